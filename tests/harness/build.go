package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BinaryEnv names the environment variable with a streamsql binary to test instead of one built from the checkout.
const BinaryEnv = "STREAMSQL_TEST_BINARY"

// BuildStreamsql builds cmd/streamsql, once per test binary, and returns the path of the program.
func BuildStreamsql(t testing.TB) string {
	t.Helper()
	needMain(t)
	path, err := shared.built.get(func() (string, error) {
		if p := os.Getenv(BinaryEnv); p != "" {
			_, err := os.Stat(p)
			return p, err
		}
		root, err := ModuleRoot()
		if err != nil {
			return "", err
		}
		dir, err := runDir("bin")
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, "streamsql")
		cmd := exec.Command("go", "build", "-o", out, "./cmd/streamsql")
		cmd.Dir = root
		if msg, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build ./cmd/streamsql: %w\n%s", err, msg)
		}
		return out, nil
	})
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	return path
}

// ModuleRoot returns the folder of the go.mod above the working folder, which for a test is its package's folder.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = up
	}
}
