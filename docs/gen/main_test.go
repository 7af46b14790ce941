package main

import (
	"os"
	"testing"
)

// Goal: docs/connectors.md says what the code declares. Method: generate it again.
func TestConnectorsPageIsCurrent(t *testing.T) {
	have, err := os.ReadFile("../connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(page()) {
		t.Error("docs/connectors.md is out of date: make docs")
	}
}
