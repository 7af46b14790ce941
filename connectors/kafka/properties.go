package kafka

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/diag"
)

const propertyPrefix = "properties."

// What a table has that does not say otherwise, in bytes. The Java client's buffer and its fetch of a partition are four
// times as large; docs/benchmarks.md has what larger ones cost.
const (
	defaultBatchBytes          = 1 << 20   // max.request.size
	defaultBufferBytes         = 8 << 20   // buffer.memory, of one producer
	defaultBufferRecords       = 1 << 14   // not bytes: each takes 220 beside its own, and collections look at all of them
	defaultPartitionFetchBytes = 256 << 10 // max.partition.fetch.bytes
	defaultFetchBytes          = 4 << 20   // fetch.max.bytes
)

// client is how to reach one cluster: the 'properties.*' options of a table, translated.
type client struct {
	servers   []string
	base      []kgo.Opt // every client
	producer  []kgo.Opt
	consumer  []kgo.Opt
	isolation kgo.IsolationLevel
	// isolationGiven says the table chose the isolation level itself.
	isolationGiven bool
	group          string // properties.group.id
	offsetReset    string // properties.auto.offset.reset, "" = not given
	acks           string // "all", "1", "0"
	idempotent     bool
	txnTimeoutMs   int64 // properties.transaction.timeout.ms, 0 = not given
	batchBytes     int   // properties.max.request.size: the largest record that a producer takes, about
	maxPoll        int   // properties.max.poll.records: records a reader hands on at a time, 0 = as many as fit into a batch
	warnings       []string
}

// identity is equal for two tables whose transactions can share a producer: same servers, same client properties.
func identity(t *catalog.Table, embedded string) string {
	var sb strings.Builder
	sb.WriteString(embedded)
	for _, k := range t.Options.Keys() {
		if strings.HasPrefix(k, propertyPrefix) && k != "properties.group.id" {
			v, _ := t.Options.Get(k)
			fmt.Fprintf(&sb, "\x00%s=%s", k, v)
		}
	}
	return sb.String()
}

// opts are the options of a client for one purpose.
func (c *client) opts(more ...[]kgo.Opt) []kgo.Opt {
	out := append([]kgo.Opt{}, c.base...)
	for _, m := range more {
		out = append(out, m...)
	}
	return out
}

// propertyReader translates one table's properties.
type propertyReader struct {
	t   *catalog.Table
	c   *client
	sec security
	err error
}

func (r *propertyReader) fail(key, format string, args ...any) *diag.Error {
	e := diag.New(diag.Config, r.t.Options.Pos(propertyPrefix+key), "table %s: option '%s%s': %s", r.t.Name, propertyPrefix, key, fmt.Sprintf(format, args...))
	if r.err == nil {
		r.err = e
	}
	return e
}

func (r *propertyReader) int(key, value string, lo, hi int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil || n < lo || n > hi {
		r.fail(key, "'%s' is not an integer from %d to %d", value, lo, hi).WithHint("write a number without unit; times are milliseconds, sizes are bytes")
		return lo
	}
	return n
}

func (r *propertyReader) ms(key, value string) time.Duration {
	return time.Duration(r.int(key, value, 0, maxInt32)) * time.Millisecond
}

func (r *propertyReader) oneOf(key, value string, allowed ...string) string {
	for _, a := range allowed {
		if strings.EqualFold(a, value) {
			return a
		}
	}
	e := r.fail(key, "'%s' is not one of %s", value, strings.Join(allowed, ", "))
	if near := diag.Nearest(value, allowed); near != "" {
		e.WithHint("did you mean '%s'?", near)
	} else {
		e.WithHint("use one of the listed values; the default is described in docs/kafka.md")
	}
	return ""
}

// handler applies one property.
type handler func(r *propertyReader, key, value string)

func producerOpt(f func(r *propertyReader, key, value string) kgo.Opt) handler {
	return func(r *propertyReader, k, v string) {
		if o := f(r, k, v); r.err == nil {
			r.c.producer = append(r.c.producer, o)
		}
	}
}

func consumerOpt(f func(r *propertyReader, key, value string) kgo.Opt) handler {
	return func(r *propertyReader, k, v string) {
		if o := f(r, k, v); r.err == nil {
			r.c.consumer = append(r.c.consumer, o)
		}
	}
}

func baseOpt(f func(r *propertyReader, key, value string) kgo.Opt) handler {
	return func(r *propertyReader, k, v string) {
		if o := f(r, k, v); r.err == nil {
			r.c.base = append(r.c.base, o)
		}
	}
}

// handlers are the properties with a meaning for this client. docs/kafka.md lists them; a test compares.
func handlers() map[string]handler {
	h := map[string]handler{
		"bootstrap.servers": func(r *propertyReader, k, v string) { r.servers(k, v) },
		"client.id":         baseOpt(func(r *propertyReader, k, v string) kgo.Opt { return kgo.ClientID(v) }),
		"group.id":          func(r *propertyReader, k, v string) { r.c.group = v },
		"auto.offset.reset": func(r *propertyReader, k, v string) {
			r.c.offsetReset = r.oneOf(k, v, "earliest", "latest", "none")
		},
		"isolation.level": func(r *propertyReader, k, v string) {
			r.c.isolationGiven = true
			if r.oneOf(k, v, "read_committed", "read_uncommitted") == "read_uncommitted" {
				r.c.isolation = kgo.ReadUncommitted()
			}
		},
		"acks": func(r *propertyReader, k, v string) {
			if r.c.acks = r.oneOf(k, v, "all", "-1", "1", "0"); r.c.acks == "-1" {
				r.c.acks = "all"
			}
		},
		"enable.idempotence": func(r *propertyReader, k, v string) {
			r.c.idempotent = r.oneOf(k, v, "true", "false") == "true"
		},
		"transaction.timeout.ms": func(r *propertyReader, k, v string) { r.c.txnTimeoutMs = r.int(k, v, 1000, maxInt32) },
		"enable.auto.commit": func(r *propertyReader, k, v string) {
			if r.oneOf(k, v, "true", "false") == "true" {
				r.fail(k, "'true' is not possible").WithDetail("read positions live in the checkpoint; group offsets are written after each checkpoint, for monitoring").
					WithHint("remove the option")
			}
		},
		"request.timeout.ms": baseOpt(func(r *propertyReader, k, v string) kgo.Opt {
			return kgo.RequestTimeoutOverhead(max(r.ms(k, v), 100*time.Millisecond))
		}),
		"connections.max.idle.ms": baseOpt(func(r *propertyReader, k, v string) kgo.Opt {
			return kgo.ConnIdleTimeout(max(r.ms(k, v), time.Second))
		}),
		"connect.via":                        func(r *propertyReader, k, v string) { r.readVia(k, v) },
		"socket.connection.setup.timeout.ms": func(r *propertyReader, k, v string) { r.sec.dialTimeout = r.ms(k, v) },
		"metadata.max.age.ms": baseOpt(func(r *propertyReader, k, v string) kgo.Opt {
			return kgo.MetadataMaxAge(max(r.ms(k, v), 5*time.Second))
		}),
		"client.rack": consumerOpt(func(r *propertyReader, k, v string) kgo.Opt { return kgo.Rack(v) }),
	}
	producerHandlers(h)
	consumerHandlers(h)
	securityHandlers(h)
	return h
}

func producerHandlers(h map[string]handler) {
	h["compression.type"] = producerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		codec := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
			"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
		return kgo.ProducerBatchCompression(codec[r.oneOf(k, v, "none", "gzip", "snappy", "lz4", "zstd")])
	})
	h["linger.ms"] = producerOpt(func(r *propertyReader, k, v string) kgo.Opt { return kgo.ProducerLinger(r.ms(k, v)) })
	h["max.request.size"] = producerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		r.c.batchBytes = int(r.int(k, v, 1024, 1<<30))
		return kgo.ProducerBatchMaxBytes(int32(r.c.batchBytes))
	})
	h["buffer.memory"] = producerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		return kgo.MaxBufferedBytes(int(r.int(k, v, 1<<16, maxInt64)))
	})
	h["max.in.flight.requests.per.connection"] = func(r *propertyReader, k, v string) { r.int(k, v, 1, 5) }
}

func consumerHandlers(h map[string]handler) {
	h["fetch.min.bytes"] = consumerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		return kgo.FetchMinBytes(int32(r.int(k, v, 1, maxInt32)))
	})
	h["fetch.max.bytes"] = consumerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		return kgo.FetchMaxBytes(int32(r.int(k, v, 1, maxInt32)))
	})
	h["fetch.max.wait.ms"] = consumerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		return kgo.FetchMaxWait(max(r.ms(k, v), 10*time.Millisecond))
	})
	h["max.partition.fetch.bytes"] = consumerOpt(func(r *propertyReader, k, v string) kgo.Opt {
		return kgo.FetchMaxPartitionBytes(int32(r.int(k, v, 1, maxInt32)))
	})
	h["max.poll.records"] = func(r *propertyReader, k, v string) { r.c.maxPoll = int(r.int(k, v, 1, maxInt32)) }
	h["check.crcs"] = func(r *propertyReader, k, v string) {
		if r.oneOf(k, v, "true", "false") == "false" {
			r.c.consumer = append(r.c.consumer, kgo.DisableFetchCRCValidation())
		}
	}
}

// inert are properties of the Java client that have no counterpart here and whose absence changes no result. They are
// accepted with a warning, so that the same file runs on a Flink cluster.
var inert = []string{
	"auto.commit.interval.ms", "batch.size", "client.dns.lookup", "default.api.timeout.ms", "delivery.timeout.ms",
	"fetch.message.max.bytes", "flink.partition-discovery.interval-millis", "group.instance.id", "group.protocol",
	"heartbeat.interval.ms", "key.deserializer", "key.serializer", "max.block.ms", "max.poll.interval.ms",
	"metadata.max.idle.ms", "metric.reporters", "metrics.num.samples", "metrics.recording.level",
	"metrics.sample.window.ms", "partition.assignment.strategy", "partition.discovery.interval.ms",
	"receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries", "retry.backoff.max.ms",
	"retry.backoff.ms", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "security.providers",
	"send.buffer.bytes", "session.timeout.ms", "socket.connection.setup.timeout.max.ms", "ssl.cipher.suites",
	"ssl.enabled.protocols", "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation", "ssl.keymanager.algorithm",
	"ssl.trustmanager.algorithm", "value.deserializer", "value.serializer", "allow.auto.create.topics",
	"exclude.internal.topics", "enable.metrics.push", "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable",
	"partitioner.availability.timeout.ms",
}

// refused are properties that would change the result and cannot be honoured, with the reason.
var refused = map[string]string{
	"transactional.id":                   "transactional ids are made from 'sink.transactional-id-prefix'",
	"interceptor.classes":                "Java classes cannot run here",
	"partitioner.class":                  "Java classes cannot run here; use 'sink.partitioner'",
	"sasl.client.callback.handler.class": "Java classes cannot run here",
	"sasl.login.callback.handler.class":  "Java classes cannot run here",
	"sasl.login.class":                   "Java classes cannot run here",
	"ssl.engine.factory.class":           "Java classes cannot run here",
	"sasl.kerberos.service.name":         "Kerberos (GSSAPI) is not supported; use SCRAM or PLAIN over TLS",
}

// newClient translates the properties of t. embedded is the embedded broker's address, used when the table names no
// servers. Unknown properties and those that cannot be honoured are refused by name.
func newClient(t *catalog.Table, embedded string, log *slog.Logger) (*client, error) {
	r := &propertyReader{t: t, c: &client{isolation: kgo.ReadCommitted(), acks: "all", idempotent: true, batchBytes: defaultBatchBytes}}
	known := handlers()
	for _, full := range t.Options.Keys() {
		key, ok := strings.CutPrefix(full, propertyPrefix)
		if !ok {
			continue
		}
		value, _ := t.Options.Get(full)
		if why, ok := refused[key]; ok {
			r.fail(key, "not supported").WithDetail("%s", why).WithHint("remove the option")
		} else if h, ok := known[key]; ok {
			h(r, key, value)
		} else if slices.Contains(inert, key) {
			r.c.warnings = append(r.c.warnings, fmt.Sprintf("option '%s' has no effect here", full))
		} else {
			e := r.fail(key, "unknown property of the Kafka client")
			if near := diag.Nearest(key, slices.Collect(maps.Keys(known))); near != "" {
				e.WithHint("did you mean '%s%s'?", propertyPrefix, near)
			} else {
				e.WithHint("remove it; docs/kafka.md lists the supported properties")
			}
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	if err := r.finish(embedded); err != nil {
		return nil, err
	}
	if log != nil {
		for _, w := range r.c.warnings {
			log.Warn(w, "table", t.Name)
		}
	}
	return r.c, nil
}

func (r *propertyReader) servers(key, value string) {
	for s := range strings.SplitSeq(value, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		// PLAINTEXT://host:port is accepted by the Java client.
		if _, rest, ok := strings.Cut(s, "://"); ok {
			s = rest
		}
		if _, port, ok := strings.Cut(s[strings.LastIndexByte(s, ']')+1:], ":"); !ok || port == "" {
			r.fail(key, "'%s' has no port", s).WithHint("write host:port, e.g. '%s:9092'", s)
			return
		}
		r.c.servers = append(r.c.servers, s)
	}
	if len(r.c.servers) == 0 {
		r.fail(key, "is empty").WithHint("write host:port[,host:port...]")
	}
}

// CheckServers is the error of a table of this connector that names no servers, in a process without embedded broker;
// nil for all other tables. It has no position.
func CheckServers(t *catalog.Table) error {
	if c := t.Connector(); c != "kafka" && c != "upsert-kafka" {
		return nil
	}
	if _, ok := t.Options.Get(propertyPrefix + "bootstrap.servers"); ok {
		return nil
	}
	return withoutServers(t, diag.Pos{})
}

func withoutServers(t *catalog.Table, at diag.Pos) *diag.Error {
	return diag.New(diag.Config, at, "table %s: missing required option 'properties.bootstrap.servers'", t.Name).
		WithHint("add 'properties.bootstrap.servers' = 'host:9092' to the WITH clause, or use the embedded broker (--embedded-kafka)")
}

func (r *propertyReader) finish(embedded string) error {
	if len(r.c.servers) == 0 {
		if embedded == "" {
			return withoutServers(r.t, r.t.Options.Pos("connector"))
		}
		r.c.servers = []string{embedded}
		// A job that writes and reads one new topic asks for it before it is made, and would wait out this age.
		r.c.base = append(r.c.base, kgo.MetadataMinAge(100*time.Millisecond))
	}
	sec, err := r.sec.opts(r)
	if err != nil {
		return err
	}
	r.c.base = append([]kgo.Opt{
		kgo.SeedBrokers(r.c.servers...), kgo.ClientID("streamsql"), kgo.SoftwareNameAndVersion("streamsql", "1"),
		kgo.DisableClientMetrics(),
	}, append(r.c.base, sec...)...)
	r.c.producer = append([]kgo.Opt{
		kgo.RecordPartitioner(partitioner{}), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.ProducerBatchMaxBytes(defaultBatchBytes), kgo.MaxBufferedRecords(defaultBufferRecords),
		// The client refuses a record that is larger than its buffer: one that max.request.size allows always fits.
		kgo.MaxBufferedBytes(max(defaultBufferBytes, 2*r.c.batchBytes)),
	}, r.c.producer...)
	r.c.consumer = append([]kgo.Opt{
		kgo.FetchMaxWait(300 * time.Millisecond), kgo.FetchMaxPartitionBytes(defaultPartitionFetchBytes), kgo.FetchMaxBytes(defaultFetchBytes),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords(), kgo.FetchIsolationLevel(r.c.isolation),
	}, r.c.consumer...)
	return nil
}
