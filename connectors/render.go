package connectors

import (
	"strings"

	"github.com/streamsql/streamsql/catalog"
)

// Render is the table's WITH list on one line, sorted by key, secrets masked, for messages.
func Render(t *catalog.Table) string {
	var sb strings.Builder
	for i, key := range t.Options.Keys() {
		if i > 0 {
			sb.WriteString(", ")
		}
		value, _ := t.Options.Get(key)
		sb.WriteString("'" + key + "'='" + strings.ReplaceAll(catalog.ShowOption(key, value), "'", "''") + "'")
	}
	return sb.String()
}
