package connectors

import (
	"strings"

	"github.com/streamsql/streamsql/catalog"
)

var secretParts = []string{"password", "secret", "token", "apikey", "api-key", "auth-params", "service-key", "basic-auth", "jaas.config",
	"account.key", "access-key", "http-headers", "private-key"}

// IsSecret reports whether the value of an option must not be shown, by words in its key as Flink does.
func IsSecret(key string) bool {
	key = strings.ToLower(key)
	for _, p := range secretParts {
		if strings.Contains(key, p) {
			return true
		}
	}
	return false
}

func mask(key, value string) string {
	if IsSecret(key) {
		return "******"
	}
	return value
}

// Render is the table's WITH list on one line, sorted by key, secrets masked, for messages.
func Render(t *catalog.Table) string {
	var sb strings.Builder
	for i, key := range t.Options.Keys() {
		if i > 0 {
			sb.WriteString(", ")
		}
		value, _ := t.Options.Get(key)
		sb.WriteString("'" + key + "'='" + strings.ReplaceAll(mask(key, value), "'", "''") + "'")
	}
	return sb.String()
}
