package sql

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// dump prints a tree with every operator in parentheses and every field that is not zero, positions left out.
// Expressions are terse: (+ a (* b 1)).
func dump(x any) string {
	var sb strings.Builder
	dumpValue(&sb, reflect.ValueOf(x))
	return sb.String()
}

func dumpExpr(e Expr) (string, bool) {
	switch x := e.(type) {
	case *Ident:
		return x.Path.Plain(), true
	case *Literal:
		switch x.Kind {
		case LitString:
			return QuoteString(x.Text), true
		case LitInteger, LitNull, LitBool:
			return x.Text, true
		}
		kind := [...]string{LitDecimal: "dec", LitApprox: "approx", LitDate: "date", LitTime: "time", LitTimestamp: "timestamp", LitBinary: "hex"}[x.Kind]
		return kind + QuoteString(x.Text), true
	case *Binary:
		return fmt.Sprintf("(%s %s %s)", x.Op, dump(x.L), dump(x.R)), true
	case *Unary:
		return fmt.Sprintf("(%s %s)", x.Op, dump(x.X)), true
	case *Is:
		return fmt.Sprintf("(is %s%s %s)", not(x.Not), x.What, dump(x.X)), true
	case *Between:
		sym := ""
		if x.Symmetric {
			sym = "symmetric "
		}
		return fmt.Sprintf("(%sbetween %s%s %s %s)", not(x.Not), sym, dump(x.X), dump(x.Lo), dump(x.Hi)), true
	case *In:
		if x.Query != nil {
			return fmt.Sprintf("(%sin %s %s)", not(x.Not), dump(x.X), dump(x.Query)), true
		}
		return fmt.Sprintf("(%sin %s %s)", not(x.Not), dump(x.X), dump(x.List)), true
	case *Interval:
		return fmt.Sprintf("interval<%d %s>", x.Value, x.Type), true
	case *Item:
		return fmt.Sprintf("%s[%s]", dump(x.X), dump(x.Index)), true
	case *FieldAccess:
		return fmt.Sprintf("%s.:%s", dump(x.X), x.Name.Text), true
	case *Call:
		if c := *x; len(x.Name) == 1 {
			c.Name, c.Args, c.Place = nil, nil, Place{}
			if reflect.DeepEqual(c, Call{}) {
				return x.Name.Plain() + strings.NewReplacer("[", "(", "]", ")").Replace("[") + strings.Trim(dump(x.Args), "[]") + ")", len(x.Args) == 0 || !strings.HasSuffix(dump(x.Args[len(x.Args)-1]), "]")
			}
		}
	}
	return "", false
}

func dumpValue(sb *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			sb.WriteString("nil")
			return
		}
		if e, ok := v.Interface().(Expr); ok {
			if s, ok := dumpExpr(e); ok {
				sb.WriteString(s)
				return
			}
		}
		dumpValue(sb, v.Elem())
	case reflect.Slice:
		if p, ok := v.Interface().(Path); ok {
			sb.WriteString(p.Plain())
			return
		}
		sb.WriteString("[")
		for i := range v.Len() {
			if i > 0 {
				sb.WriteString(" ")
			}
			dumpValue(sb, v.Index(i))
		}
		sb.WriteString("]")
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case Name:
			sb.WriteString(x.Text)
			return
		case types.Type:
			sb.WriteString("<" + x.String() + ">")
			return
		}
		dumpStruct(sb, v, true)
	case reflect.String:
		fmt.Fprintf(sb, "%q", v.String())
	default:
		fmt.Fprint(sb, v.Interface())
	}
}

func dumpStruct(sb *strings.Builder, v reflect.Value, name bool) {
	if name {
		sb.WriteString(v.Type().Name() + "{")
	}
	sep := ""
	for i := range v.NumField() {
		f := v.Type().Field(i)
		fv := v.Field(i)
		if f.Type == reflect.TypeFor[diag.Pos]() || f.Type == reflect.TypeFor[Place]() || fv.IsZero() {
			continue
		}
		sb.WriteString(sep)
		sep = " "
		if f.Anonymous {
			dumpStruct(sb, fv, false)
			continue
		}
		sb.WriteString(f.Name + ":")
		dumpValue(sb, fv)
	}
	if name {
		sb.WriteString("}")
	}
}
