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

// BuildStreamsql builds cmd/streamsql, once per test binary, and returns the path of the program. The packages of a run share
// one in bin of the checkout, which go build leaves alone while it is up to date: linking it takes seconds.
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
		common := filepath.Join(root, "bin", "test", "streamsql")
		if err := os.MkdirAll(filepath.Dir(common), 0o755); err != nil {
			return "", err
		}
		lock, err := lockFile(common+".lock", true)
		if err != nil {
			return "", err
		}
		defer lock.Close()
		cmd := exec.Command("go", "build", "-o", common, "./cmd/streamsql")
		cmd.Dir = root
		if msg, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build ./cmd/streamsql: %w\n%s", err, msg)
		}
		// A name of its own stays this program when another run builds a newer one.
		dir, err := runDir("bin")
		if err != nil {
			return "", err
		}
		own := filepath.Join(dir, "streamsql")
		if err := os.Link(common, own); err != nil { // another file system
			err = copyFile(own, common, 0o755)
		}
		return own, err
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

func copyFile(to, from string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, mode)
}
