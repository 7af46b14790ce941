package harness

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Versions of Apache Kafka that tests run against.
const (
	KafkaDefault = "4.3.1" // what SharedKafka runs
	KafkaNewest  = "4.4.0"
	KafkaOldest4 = "4.0.0" // the first release with transaction.version 2 by default
	KafkaTV1     = "3.9.1" // the last release line without transaction.version 2
)

// KafkaOption changes the broker that Kafka starts.
type KafkaOption func(*kafkaOptions)

type kafkaOptions struct {
	version string
	nodes   int
	heap    string
	config  map[string]string // server.properties, over the harness's own
	format  []string          // arguments of the storage tool's format
	sasl    string            // mechanism, "" is none
	user    string
	pass    string
	tls     bool
	mtls    bool
	via     []func(listen string) (addr string, err error)
}

// KafkaVersion runs another release of Apache Kafka than KafkaDefault.
func KafkaVersion(v string) KafkaOption { return func(o *kafkaOptions) { o.version = v } }

// KafkaNodes runs a cluster of n nodes, each broker and controller; topics get min(n, 3) replicas.
func KafkaNodes(n int) KafkaOption { return func(o *kafkaOptions) { o.nodes = n } }

// KafkaHeap sets the heap of each node, in Java's notation. The default is 384m.
func KafkaHeap(size string) KafkaOption { return func(o *kafkaOptions) { o.heap = size } }

// KafkaConfig sets a line of server.properties, over the harness's own value if it has one.
func KafkaConfig(key, value string) KafkaOption {
	return func(o *kafkaOptions) { o.config[key] = value }
}

// KafkaTransactionVersion formats the cluster with a transaction.version feature level: 1 gives the transaction
// protocol before KIP-890 part 2 (EndTxn up to version 4, no epoch bump per transaction).
func KafkaTransactionVersion(level int) KafkaOption {
	return func(o *kafkaOptions) {
		o.format = append(o.format, "--feature", fmt.Sprintf("transaction.version=%d", level))
	}
}

// KafkaSASL makes Broker.Addr demand a login. The mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
func KafkaSASL(mechanism, user, password string) KafkaOption {
	return func(o *kafkaOptions) { o.sasl, o.user, o.pass = mechanism, user, password }
}

// KafkaTLS makes Broker.Addr speak TLS with a certificate of a new authority; Broker.CAFile has the authority's PEM.
func KafkaTLS() KafkaOption { return func(o *kafkaOptions) { o.tls = true } }

// KafkaMutualTLS is KafkaTLS where the client must show a certificate too: Broker.ClientCertFile and ClientKeyFile.
func KafkaMutualTLS() KafkaOption { return func(o *kafkaOptions) { o.tls, o.mtls = true, true } }

// KafkaVia gives each node one more plain listener, whose clients are told to come by another way: by is called with the listener's
// address before the node starts and returns the address to advertise, "host:port", such as that of a proxy. Broker.Via has what clients
// are to be given. The option may be given several times; whatever the harness itself does goes past all of them.
func KafkaVia(by func(listen string) (addr string, err error)) KafkaOption {
	return func(o *kafkaOptions) { o.via = append(o.via, by) }
}

// secured reports whether clients connect to a listener other than the plain one that the harness itself uses.
func (o *kafkaOptions) secured() bool { return o.tls || o.sasl != "" }

// clientProtocol is Kafka's security.protocol of the listener behind Broker.Addr.
func (o *kafkaOptions) clientProtocol() string {
	switch {
	case o.tls && o.sasl != "":
		return "SASL_SSL"
	case o.tls:
		return "SSL"
	case o.sasl != "":
		return "SASL_PLAINTEXT"
	}
	return "PLAINTEXT"
}

// properties renders server.properties of one node.
func (o *kafkaOptions) properties(n *node, voters string, certs *certificates) string {
	replicas := min(o.nodes, 3)
	isr := max(1, replicas-1)
	p := map[string]any{
		"process.roles":                                    "broker,controller",
		"node.id":                                          n.id,
		"controller.quorum.voters":                         voters,
		"controller.listener.names":                        "CONTROLLER",
		"inter.broker.listener.name":                       "INTERNAL",
		"log.dirs":                                         n.data(),
		"auto.create.topics.enable":                        false,
		"num.partitions":                                   1,
		"default.replication.factor":                       replicas,
		"min.insync.replicas":                              isr,
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    isr,
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            isr,
		// Fifty partitions each is the default, and seconds of start-up on a small machine.
		"offsets.topic.num.partitions":                 3,
		"transaction.state.log.num.partitions":         3,
		"share.coordinator.state.topic.num.partitions": 1,
		"group.initial.rebalance.delay.ms":             0,
		// How often the coordinator looks for transactions past their timeout; the default, 10 s, is a test's patience.
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
		// A killed broker may register again only when its old session has timed out, after 9 s by default.
		"broker.session.timeout.ms":    3000,
		"broker.heartbeat.interval.ms": 500,
		// 128 MiB of heap by default.
		"log.cleaner.dedupe.buffer.size": 4 << 20,
		"num.network.threads":            2,
		"num.io.threads":                 4,
		"background.threads":             2,
	}
	listeners := []string{fmt.Sprintf("INTERNAL://127.0.0.1:%d", n.internal)}
	protocols := "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
	if o.secured() {
		listeners = append(listeners, fmt.Sprintf("CLIENT://127.0.0.1:%d", n.client))
		protocols += ",CLIENT:" + o.clientProtocol()
	}
	advertised := slices.Clone(listeners)
	for i, v := range n.via {
		listeners = append(listeners, fmt.Sprintf("VIA%d://127.0.0.1:%d", i, v.port))
		advertised = append(advertised, fmt.Sprintf("VIA%d://%s", i, v.advertised))
		protocols += fmt.Sprintf(",VIA%d:PLAINTEXT", i)
	}
	p["advertised.listeners"] = strings.Join(advertised, ",")
	p["listeners"] = strings.Join(append(listeners, fmt.Sprintf("CONTROLLER://127.0.0.1:%d", n.controller)), ",")
	p["listener.security.protocol.map"] = protocols
	o.securityProperties(p, certs)
	for k, v := range o.config {
		p[k] = v
	}
	lines := make([]string, 0, len(p))
	for k, v := range p {
		lines = append(lines, fmt.Sprintf("%s=%v\n", k, v))
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

func (o *kafkaOptions) securityProperties(p map[string]any, certs *certificates) {
	const listener = "listener.name.client."
	if o.sasl != "" {
		p[listener+"sasl.enabled.mechanisms"] = o.sasl
		module := "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		if o.sasl == "PLAIN" {
			module = fmt.Sprintf(`org.apache.kafka.common.security.plain.PlainLoginModule required user_%s="%s";`, o.user, o.pass)
		}
		p[listener+strings.ToLower(o.sasl)+".sasl.jaas.config"] = module
	}
	if o.tls {
		p[listener+"ssl.keystore.type"] = "PEM"
		p[listener+"ssl.keystore.location"] = certs.serverStore
		p[listener+"ssl.truststore.type"] = "PEM"
		p[listener+"ssl.truststore.location"] = certs.ca
		if o.mtls {
			p[listener+"ssl.client.auth"] = "required"
		}
	}
}
