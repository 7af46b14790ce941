package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/connectors/kafka/embedded"
)

// killed is what a kill of the process at this moment leaves on disk: the files as they are.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func start(t *testing.T, dir string) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// create makes the topic the tests write to.
func create(ctx context.Context, t *testing.T, b *embedded.Broker) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
}

// write puts values into one transaction of id and ends it, or leaves it open.
func write(ctx context.Context, t *testing.T, b *embedded.Broker, id string, end bool, values ...string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.TransactionalID(id), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := cl.ProduceSync(ctx, &kgo.Record{Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if end {
		if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
}

// committed reads up to a last transaction, which it writes for that.
func committed(ctx context.Context, t *testing.T, b *embedded.Broker) (values []string) {
	t.Helper()
	write(ctx, t, b, "reader", true, "end")
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ConsumeTopics("t"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fs.Records() {
			if string(r.Value) == "end" {
				return values
			}
			values = append(values, string(r.Value))
		}
	}
}

// A kill aborts what was open, for good, and nothing else: neither the next transaction of the same producer, nor what
// was given up comes back at a later kill.
func TestKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "kafka")
	b := start(t, dir)
	create(ctx, t, b)
	write(ctx, t, b, "job", true, "1", "2")
	write(ctx, t, b, "other", true, "3")
	write(ctx, t, b, "job", false, "lost")
	write(ctx, t, b, "other", false, "lost too")
	want := []string{"1", "2", "3"}
	for kill, next := range []string{"4", "5", "6"} {
		dir = killed(t, dir)
		b = start(t, dir)
		write(ctx, t, b, "job", true, next)
		want = append(want, next)
		look := start(t, killed(t, dir))
		if got := committed(ctx, t, look); !slices.Equal(got, want) {
			t.Fatalf("after kill %d: %v, want %v", kill+1, got, want)
		}
		write(ctx, t, b, "job", false, "lost again")
	}
}

// A broker that was closed leaves nothing behind that looks like a kill.
func TestClose(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "kafka")
	b, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	create(ctx, t, b)
	write(ctx, t, b, "job", true, "1")
	b.Close()
	if _, err := os.Stat(filepath.Join(dir, "running")); !os.IsNotExist(err) {
		t.Fatalf("a closed broker looks like a killed one: %v", err)
	}
	if got := committed(ctx, t, start(t, dir)); !slices.Equal(got, []string{"1"}) {
		t.Fatalf("after a close: %v", got)
	}
}
