package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// CacheEnv names the environment variable that moves the cache of fetched parts.
const CacheEnv = "STREAMSQL_TEST_CACHE"

// CacheDir returns the directory where fetched parts are kept between runs: $STREAMSQL_TEST_CACHE, or streamsql-test in
// the user's cache directory. It may be deleted at any time no test runs.
func CacheDir() (string, error) {
	if d := os.Getenv(CacheEnv); d != "" {
		return filepath.Abs(d)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory (set $%s to one): %w", CacheEnv, err)
	}
	return filepath.Join(base, "streamsql-test"), nil
}

// lockFile takes an exclusive advisory lock on path, creating it, and waits for it if wait is set. The lock ends with the
// process or with the returned file's Close. A lock held elsewhere is (nil, nil) when not waiting.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// kafkaPOM asks Maven for the broker and all it needs at run time. The core artifact brings the clients, the server, the
// storage tool and Scala; slf4j-simple is there because the artifacts carry no log backend, and without one a broker
// that cannot start says nothing.
const kafkaPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>streamsql.test</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>%s</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>
    <executions><execution>
      <id>libs</id><phase>package</phase><goals><goal>copy-dependencies</goal></goals>
      <configuration><outputDirectory>${project.basedir}/libs</outputDirectory><includeScope>runtime</includeScope></configuration>
    </execution></executions>
  </plugin></plugins></build>
</project>
`

// fetchTimeout bounds one Maven run; a first one on a slow line takes about a minute.
const fetchTimeout = 8 * time.Minute

// fetchTries is how often a fetch is tried.
const fetchTries = 4

// kafkaJars returns the directory holding the jars of the given Kafka version, fetching them with Maven when they are not
// cached. Parallel callers, in this process or another, wait for the one that fetches.
func kafkaJars(version string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	home := filepath.Join(cache, "kafka-"+version)
	libs := filepath.Join(home, "libs")
	lock, err := lockFile(home+".lock", true)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	// The rename below is what makes a fetch complete, so a directory that exists is whole.
	if _, err := os.Stat(libs); err == nil {
		return libs, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", errors.New("the tests fetch Apache Kafka " + version + " with Maven, and mvn is not on the PATH: " +
			"install Maven and a Java runtime of version 17 or newer (Debian: apt-get install maven openjdk-17-jdk-headless), or run with -short")
	}
	part := home + ".part"
	for try := 1; ; try++ {
		err := fetchKafka(part, version, try > 1)
		if err == nil {
			break
		}
		if try == fetchTries {
			return "", fmt.Errorf("fetch Apache Kafka %s with Maven (tried %d times): %w", version, try, err)
		}
		time.Sleep(time.Duration(try) * 10 * time.Second) // a repository that is down for a moment
	}
	if err := os.Rename(part, home); err != nil {
		return "", err
	}
	return libs, nil
}

// fetchKafka copies the jars of a Kafka version into part/libs. With again, Maven asks once more for what it remembers as
// missing.
func fetchKafka(part, version string, again bool) error {
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(part, "pom.xml"), fmt.Appendf(nil, kafkaPOM, version), 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	args := []string{"-B", "-q", "-ntp", "package"}
	if again {
		args = append(args, "-U")
	}
	cmd := exec.CommandContext(ctx, "mvn", args...)
	cmd.Dir = part
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(string(out), 30))
	}
	if _, err := os.Stat(filepath.Join(part, "libs", "kafka_2.13-"+version+".jar")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("maven succeeded but copied no kafka_2.13-%s.jar", version)
	}
	return nil
}
