package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/connectors/kafka/embedded"
	"github.com/streamsql/streamsql/sql/diag"
)

// Records survive a restart of the broker, topics are created by use, and a directory has one user.
func TestRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	b, err := embedded.Start(embedded.Options{Dir: dir, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(embedded.Options{Dir: dir}); diag.CodeOf(err) != diag.Conflict {
		t.Fatalf("second broker on one directory: %v", err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	b.Close()

	if b, err = embedded.Start(embedded.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cl, err = kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ConsumeTopics("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	fs := cl.PollFetches(ctx)
	if rs := fs.Records(); fs.Err() != nil || len(rs) != 1 || string(rs[0].Value) != "v" {
		t.Fatalf("after a restart: %v %v", fs.Err(), rs)
	}
}
