package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A JVM that starts a broker spends half of its time on loading classes. It can write what it has loaded into a file when it
// ends (class data sharing, -XX:ArchiveClassesAtExit), and later ones map that file. The file is kept beside the jars, one for
// each Java. A JVM takes no notice of a file that does not fit its jars or itself.

// classArchive returns the path of the file of loaded classes for the brokers with these jars, whether it is there or not; "" when
// no java is found.
func classArchive(libs string) string {
	java, err := exec.LookPath("java")
	if err != nil {
		return ""
	}
	if java, err = filepath.EvalSymlinks(java); err != nil {
		return ""
	}
	st, err := os.Stat(java)
	if err != nil {
		return ""
	}
	key := sha256.Sum256(fmt.Append(nil, java, st.Size(), st.ModTime().UnixNano()))
	return filepath.Join(filepath.Dir(libs), "classes-"+hex.EncodeToString(key[:4])+".jsa")
}

// classArguments are those that make a JVM use the file of loaded classes, or write it.
func (b *Broker) classArguments() []string {
	if b.archive != "" {
		return []string{"-XX:ArchiveClassesAtExit=" + b.archive + ".part"}
	}
	file := classArchive(b.libs)
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	return []string{"-Xshare:auto", "-XX:SharedArchiveFile=" + file}
}

// archiveClasses makes a broker of one node, which nobody stops before its end, write the file of loaded classes when there is none
// yet and no other process is about to.
func (b *Broker) archiveClasses() {
	file := classArchive(b.libs)
	if file == "" {
		return
	}
	if _, err := os.Stat(file); err == nil {
		return
	}
	lock, err := lockFile(file+".lock", false)
	if err != nil || lock == nil {
		return
	}
	b.archive, b.archiving = file, lock
}

// keepClasses ends a broker of archiveClasses in order, which takes some seconds more than to kill it, and keeps the file. Without
// the file later brokers are slower, no more.
func (b *Broker) keepClasses() {
	if b.archive == "" {
		return
	}
	defer b.archiving.Close()
	part := b.archive + ".part"
	defer os.Remove(part)
	p := b.nodes[0].process()
	if p == nil || p.Signal(syscall.SIGTERM) != nil {
		return
	}
	// A JVM that was asked to end ends with this code, after it has written the file.
	if code, err := p.Wait(startTimeout); err == nil && code == 128+int(syscall.SIGTERM) {
		_ = os.Rename(part, b.archive)
	}
}
