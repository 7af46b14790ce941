package harness

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The file of loaded classes that a broker writes when it ends is one that a JVM with the same jars can map.
func TestClassArchive(t *testing.T) {
	skipShort(t, "Kafka broker")
	file := filepath.Join(t.TempDir(), "classes.jsa")
	b, err := startKafka(nil, func(b *Broker) {
		lock, err := lockFile(file+".lock", true)
		if err != nil {
			t.Fatal(err)
		}
		b.archive, b.archiving = file, lock
	})
	if err != nil {
		t.Fatal(err)
	}
	b.close()
	out, err := exec.Command("java", "-XX:+UseSerialGC", "-Xshare:on", "-XX:SharedArchiveFile="+file, "-cp", filepath.Join(b.libs, "*"), "-version").CombinedOutput()
	if err != nil {
		t.Errorf("a JVM cannot use the file: %v\n%s", err, out)
	}
}
