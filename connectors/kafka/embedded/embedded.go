package embedded

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/streamsql/streamsql/sql/diag"
)

// Options configure a broker.
type Options struct {
	// Dir keeps the topics over restarts. Two processes must not share it.
	Dir string
	// Port to listen on at 127.0.0.1; 0 takes a free one.
	Port int
	// Partitions of topics that are created by use; 0 means 1.
	Partitions int
	// Sync makes every write survive a power loss, at a high price.
	Sync bool
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	lock    *os.File
	running string // a file that is there while the broker runs, and after a kill
}

// Weakness is what the embedded broker does not promise.
const Weakness = "the embedded broker shares this process: a kill of the process aborts open transactions " +
	"(the job then rewinds to the checkpoint before), and without Sync a power loss can take acknowledged records"

// Start runs a broker until Close. Topics are created when they are first used. After a kill it ends the transactions
// that were open. It fails with diag.Conflict when another process uses the directory.
func Start(o Options) (*Broker, error) {
	if o.Dir == "" {
		return nil, diag.New(diag.Config, diag.Pos{}, "the embedded broker needs a directory")
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "the embedded broker's directory cannot be made").Wrap(err)
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	b := &Broker{lock: lock, running: filepath.Join(o.Dir, "running")}
	_, missing := os.Stat(b.running)
	if err := os.WriteFile(b.running, nil, 0o644); err != nil {
		unlock(lock)
		return nil, diag.New(diag.External, diag.Pos{}, "the embedded broker's directory cannot be written").Wrap(err)
	}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.DataDir(filepath.Join(o.Dir, "data")), kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(max(1, o.Partitions)), kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			return net.Listen(network, net.JoinHostPort("127.0.0.1", portText(o.Port)))
		})}
	if o.Sync {
		opts = append(opts, kfake.SyncWrites())
	}
	if b.cluster, err = kfake.NewCluster(opts...); err != nil {
		unlock(lock)
		return nil, diag.New(diag.External, diag.Pos{}, "the embedded broker does not start").Wrap(err).
			WithHint("another program may use port %d of 127.0.0.1", o.Port)
	}
	if missing == nil {
		if err := abortOpen(context.Background(), b.Addr()); err != nil {
			b.cluster.Close()
			unlock(lock)
			return nil, diag.New(diag.External, diag.Pos{}, "the embedded broker cannot end the transactions that a kill left open").Wrap(err)
		}
	}
	return b, nil
}

// Addr is host:port for clients.
func (b *Broker) Addr() string { return b.cluster.ListenAddrs()[0] }

// Close stops the broker. Open transactions stay open and can be committed after the next Start.
func (b *Broker) Close() {
	b.cluster.Close()
	_ = os.Remove(b.running) // what is left behind costs a reading of the logs at the next Start
	unlock(b.lock)
}
