package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Goal: the generated pages say what the code and the tests say. Method: generate them again.
func TestPagesAreCurrent(t *testing.T) {
	const root = "../.."
	for file, want := range pages(root) {
		have, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("%s is out of date: make docs", file)
		}
	}
}
