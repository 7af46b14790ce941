package expr

import "fmt"

// literalSQL prints a literal as SQL.
func literalSQL(l *Literal) string { return fmt.Sprint(l.Value) }
