package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// startTimeout bounds the start of a server. It is generous because a loaded machine is slow, not broken.
const startTimeout = 5 * time.Minute

// Broker is a running Apache Kafka cluster of one or more nodes.
type Broker struct {
	opts  kafkaOptions
	dir   string
	libs  string
	certs *certificates // nil without TLS
	nodes []*node

	archive   string   // the file of loaded classes, when this broker is to write it
	archiving *os.File // lock that keeps others from writing it too
}

// node is one JVM, broker and controller in one. Its ports and directory stay the same over restarts.
type node struct {
	id                           int
	dir                          string
	internal, client, controller int // ports
	via                          []via
	mu                           sync.Mutex
	proc                         *Process // nil before the first start
}

// via is a listener of KafkaVia.
type via struct {
	port       int
	advertised string // "host:port"
}

// SharedKafka returns the broker of this test binary, started on first use: KafkaDefault, one node, no security.
// Tests must not stop it or change its settings; they take topics and transactional ids of their own (Topic,
// UniqueName).
func SharedKafka(t testing.TB) *Broker {
	t.Helper()
	skipShort(t, "Kafka broker")
	needMain(t)
	b, err := shared.kafka.get(func() (*Broker, error) {
		b, err := startKafka(nil, (*Broker).archiveClasses)
		if err == nil {
			onStop(b.close)
		}
		return b, err
	})
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	return b
}

// Kafka starts a broker of this test's own, stopped when the test ends.
func Kafka(t testing.TB, opts ...KafkaOption) *Broker {
	t.Helper()
	skipShort(t, "Kafka broker")
	b, err := startKafka(opts)
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range b.nodes {
				t.Logf("kafka node %d wrote:\n%s", n.id, tail(n.log(), 30))
			}
		}
		b.close()
	})
	return b
}

// startKafka starts a broker; before is called when it is prepared.
func startKafka(opts []KafkaOption, before ...func(*Broker)) (*Broker, error) {
	o := kafkaOptions{version: KafkaDefault, nodes: 1, heap: "384m", config: map[string]string{}}
	for _, f := range opts {
		f(&o)
	}
	if _, err := exec.LookPath("java"); err != nil {
		return nil, errors.New("the tests run a real Kafka broker, and java is not on the PATH: " +
			"install a Java runtime of version 17 or newer (Debian: apt-get install openjdk-17-jdk-headless), or run with -short")
	}
	libs, err := kafkaJars(o.version)
	if err != nil {
		return nil, err
	}
	dir, err := runDir("kafka")
	if err != nil {
		return nil, err
	}
	b := &Broker{opts: o, dir: dir, libs: libs}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	for _, f := range before {
		f(b)
	}
	if err := b.Restart(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// clusterID is any 16 bytes in URL-safe base64; all nodes of a cluster must have the same.
const clusterID = "4L6g3nShT-eMCtK--X86sw"

// prepare takes the ports, writes the configuration and formats the data directories.
func (b *Broker) prepare() (err error) {
	if b.opts.tls {
		if b.certs, err = newCertificates(b.dir); err != nil {
			return err
		}
	}
	for id := 1; id <= b.opts.nodes; id++ {
		n := &node{id: id, dir: filepath.Join(b.dir, fmt.Sprintf("n%d", id))}
		for _, port := range []*int{&n.internal, &n.client, &n.controller} {
			if *port, err = freePort(); err != nil {
				return err
			}
		}
		for _, by := range b.opts.via {
			var v via
			if v.port, err = freePort(); err != nil {
				return err
			}
			if v.advertised, err = by(fmt.Sprintf("127.0.0.1:%d", v.port)); err != nil {
				return err
			}
			n.via = append(n.via, v)
		}
		b.nodes = append(b.nodes, n)
	}
	for _, n := range b.nodes {
		if err := os.Mkdir(n.dir, 0o755); err != nil {
			return err
		}
		if err := b.configure(n); err != nil {
			return err
		}
		if err := b.format(n); err != nil {
			return err
		}
	}
	return nil
}

// format makes the data directory of a node. What the storage tool writes is a few small files, the same for all nodes with one
// number and options, so it is kept with the jars: starting a JVM to write it takes as long as half a broker's start.
func (b *Broker) format(n *node) error {
	args := slices.Clone(b.opts.format)
	if strings.HasPrefix(b.opts.sasl, "SCRAM") {
		args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", b.opts.sasl, b.opts.user, b.opts.pass))
	}
	key := sha256.Sum256(fmt.Append(nil, clusterID, n.id, b.opts.nodes, args, b.opts.config)) // a map is printed in the order of its keys
	kept := filepath.Join(filepath.Dir(b.libs), "formatted", hex.EncodeToString(key[:8]))
	if err := os.CopyFS(n.data(), os.DirFS(kept)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tool := append([]string{"kafka.tools.StorageTool", "format", "-t", clusterID, "-c", n.properties()}, args...)
	if out, err := exec.Command("java", b.java(tool...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("format the data directory of Kafka %s: %w\n%s", b.opts.version, err, tail(string(out), 20))
	}
	part := filepath.Join(n.dir, "formatted")
	if err := errors.Join(os.CopyFS(part, os.DirFS(n.data())), os.MkdirAll(filepath.Dir(kept), 0o755)); err != nil {
		return err
	}
	// Another process may have been faster, or the cache lies on another file system: neither matters.
	_ = os.Rename(part, kept)
	return nil
}

// configure writes server.properties of a node.
func (b *Broker) configure(n *node) error {
	var voters []string
	for _, v := range b.nodes {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", v.id, v.controller))
	}
	return os.WriteFile(n.properties(), []byte(b.opts.properties(n, strings.Join(voters, ","), b.certs)), 0o644)
}

// SetConfig changes a line of every node's server.properties; a node follows when it is next started.
func (b *Broker) SetConfig(t testing.TB, key, value string) {
	t.Helper()
	b.opts.config[key] = value
	for _, n := range b.nodes {
		if err := b.configure(n); err != nil {
			t.Fatalf("harness: %v", err)
		}
	}
}

func (n *node) properties() string { return filepath.Join(n.dir, "server.properties") }

func (n *node) data() string { return filepath.Join(n.dir, "data") }

// java returns the arguments of a JVM that runs one of Kafka's main classes.
func (b *Broker) java(args ...string) []string {
	return slices.Concat(b.classArguments(), []string{
		"-XX:+UseSerialGC", "-Xms64m", "-Xmx" + b.opts.heap,
		// Half the time to start: the optimising compiler pays off only in brokers that live longer than a test.
		"-XX:TieredStopAtLevel=1",
		"-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", filepath.Join(b.libs, "*"),
	}, args)
}

// Version returns the version of Apache Kafka.
func (b *Broker) Version() string { return b.opts.version }

// Addr returns the bootstrap servers for clients, "host:port" of every node, separated by commas.
func (b *Broker) Addr() string { return strings.Join(b.addrs(b.opts.secured()), ",") }

func (b *Broker) addrs(client bool) []string {
	var a []string
	for _, n := range b.nodes {
		port := n.internal
		if client {
			port = n.client
		}
		a = append(a, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return a
}

// Via returns the bootstrap servers for clients that come by the way of the i-th KafkaVia.
func (b *Broker) Via(i int) string {
	var a []string
	for _, n := range b.nodes {
		a = append(a, n.via[i].advertised)
	}
	return strings.Join(a, ",")
}

// CAFile returns the PEM file of the authority that signed the broker's certificate, "" without KafkaTLS.
func (b *Broker) CAFile() string { return b.certs.get(func(c *certificates) string { return c.ca }) }

// ClientCertFile and ClientKeyFile return the PEM files of a certificate that the broker accepts from clients.
func (b *Broker) ClientCertFile() string {
	return b.certs.get(func(c *certificates) string { return c.clientCert })
}

// ClientKeyFile is the key of ClientCertFile.
func (b *Broker) ClientKeyFile() string {
	return b.certs.get(func(c *certificates) string { return c.clientKey })
}

func (c *certificates) get(f func(*certificates) string) string {
	if c == nil {
		return ""
	}
	return f(c)
}

// Restart starts every node that does not run and returns when all brokers answer. Data, addresses and settings are
// those from before.
func (b *Broker) Restart() error {
	for _, n := range b.nodes {
		if err := b.startNode(n); err != nil {
			return err
		}
	}
	return b.ready()
}

// RestartNode starts the node with the given number, 1 to KafkaNodes, and returns when all running brokers answer.
func (b *Broker) RestartNode(id int) error {
	if err := b.startNode(b.nodes[id-1]); err != nil {
		return err
	}
	return b.ready()
}

func (b *Broker) startNode(n *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil && n.proc.Alive() {
		return nil
	}
	p, err := start(Command{Path: "java", Args: b.java("kafka.Kafka", n.properties()), Dir: n.dir})
	if err != nil {
		return err
	}
	n.proc = p
	return nil
}

func (n *node) process() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

func (n *node) running() bool {
	p := n.process()
	return p != nil && p.Alive()
}

func (n *node) log() string {
	if p := n.process(); p != nil {
		return p.Output()
	}
	return ""
}

// ready waits until every running node reports every running node as a live broker.
func (b *Broker) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var up []*node
	for _, n := range b.nodes {
		if n.running() {
			up = append(up, n)
		}
	}
	for _, n := range up {
		cl, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", n.internal)), kgo.RetryTimeout(time.Second))
		if err != nil {
			return err
		}
		err = b.nodeReady(ctx, cl.SeedBrokers()[0], n, len(up))
		cl.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// nodeReady waits until the node, reached through seed, knows of want brokers.
func (b *Broker) nodeReady(ctx context.Context, seed *kgo.Broker, n *node, want int) error {
	last := "no answer"
	for {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		m, err := req.RequestWith(ctx, seed)
		switch {
		case err != nil:
			last = err.Error()
		case len(m.Brokers) >= want:
			return nil
		default:
			last = fmt.Sprintf("%d brokers of %d", len(m.Brokers), want)
		}
		select {
		case <-n.process().Done():
			return fmt.Errorf("kafka %s node %d ended during its start (%v); it wrote:\n%s",
				b.opts.version, n.id, n.process().cmd.ProcessState, tail(n.log(), 30))
		case <-ctx.Done():
			return fmt.Errorf("kafka %s node %d is not ready after %v: %s; it wrote:\n%s",
				b.opts.version, n.id, startTimeout, last, tail(n.log(), 30))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends every node with SIGKILL, as a power cut would but for the page cache, and returns when they are gone.
func (b *Broker) Kill() {
	for _, n := range b.nodes {
		b.KillNode(n.id)
	}
}

// KillNode ends the node with the given number with SIGKILL and returns when it is gone.
func (b *Broker) KillNode(id int) {
	if p := b.nodes[id-1].process(); p != nil {
		p.Kill()
	}
}

// PauseNode stops the node with the given number in its tracks (SIGSTOP); ResumeNode lets it go on.
func (b *Broker) PauseNode(id int) error { return b.nodes[id-1].process().Pause() }

// ResumeNode ends a PauseNode.
func (b *Broker) ResumeNode(id int) error { return b.nodes[id-1].process().Resume() }

// stopGrace bounds a controlled shutdown; the last nodes of a quorum can hang in it.
const stopGrace = 20 * time.Second

// Stop shuts every node down in order and returns when they are gone. Restart brings them back.
func (b *Broker) Stop() {
	for _, n := range b.nodes {
		if p := n.process(); p != nil {
			p.Signal(syscall.SIGTERM)
		}
	}
	deadline := time.After(stopGrace)
	for _, n := range b.nodes {
		p := n.process()
		if p == nil {
			continue
		}
		select {
		case <-p.Done():
		case <-deadline:
			p.Kill()
		}
	}
}

// Pause stops every node in its tracks (SIGSTOP): connections stay open and nothing answers. Resume lets them go on.
func (b *Broker) Pause() error { return b.each((*Process).Pause) }

// Resume ends a Pause.
func (b *Broker) Resume() error { return b.each((*Process).Resume) }

func (b *Broker) each(f func(*Process) error) error {
	var errs []error
	for _, n := range b.nodes {
		if p := n.process(); p != nil {
			errs = append(errs, f(p))
		}
	}
	return errors.Join(errs...)
}

// close ends the cluster for good. Nobody will read its data again, so it is killed rather than asked.
func (b *Broker) close() {
	b.keepClasses()
	b.Kill()
	os.RemoveAll(b.dir)
}
