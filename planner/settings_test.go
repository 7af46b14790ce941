package planner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No setting is accepted and ignored: each known key is read somewhere, takes one value only, or is answered by a notice.
func TestEverySettingHasAnEffect(t *testing.T) {
	var src strings.Builder
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if filepath.Base(path) != "settings.go" {
			src.Write(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	text, err := os.ReadFile("settings.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if name, key, ok := strings.Cut(strings.TrimSpace(line), "= \""); ok && strings.HasPrefix(name, "key") {
			constants[strings.TrimSuffix(key, "\"")] = strings.TrimSpace(name)
		}
	}
	for key, s := range settings {
		one := len(s.values)-len(s.refused) == 1 || s.typ == boolSetting && len(s.refused) == 1
		read := strings.Contains(src.String(), `"`+key+`"`) || constants[key] != "" && strings.Contains(src.String(), constants[key]+")")
		if !one && !read && s.notice == "" {
			t.Errorf("setting '%s' is accepted, and nothing reads it", key)
		}
	}
}
