package kafka

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/lint"
)

// manyTransactions is how many transactions a sink may have open before the user is told: each is a producer id and a
// batch of requests per checkpoint.
const manyTransactions = 1000

// lintTable is Connector.Lint. Faults of the table itself are found by Check, before.
func lintTable(s connectors.LintSpec, upsert bool) []lint.Finding {
	x, err := parseTable(s.Table, upsert)
	if err != nil {
		return nil
	}
	c, err := newClient(s.Table, "embedded:0", nil)
	if err != nil {
		return nil
	}
	if s.Use == connectors.UseSource {
		return lintSource(x, c)
	}
	if x.ahead() {
		return nil // no transaction is open but while it is committed
	}
	if s.Mode.Delivery == connectors.TwoPhaseCommit {
		return lintTransactions(x, c, s)
	}
	if given(x) && !upsert {
		return []lint.Finding{{Code: "SSQL-W104", Table: s.Table.Name, Option: "sink.delivery-guarantee",
			Message: fmt.Sprintf("table %s: rows can repeat in the topic, and nothing tells a repeated row from a new one", s.Table.Name),
			Detail:  s.Mode.Weakness,
			Hint:    "remove 'sink.delivery-guarantee' (the default is exactly-once), or write into 'connector' = 'upsert-kafka' with a primary key"}}
	}
	return nil
}

func given(x *table) bool { return x.v.Has("sink.delivery-guarantee") }

func lintSource(x *table, c *client) (out []lint.Finding) {
	if c.isolation == kgo.ReadUncommitted() {
		out = append(out, lint.Finding{Code: "SSQL-W201", Table: x.t.Name, Option: propertyPrefix + "isolation.level",
			Message: fmt.Sprintf("table %s reads rows of open and aborted transactions", x.t.Name),
			Detail:  "what an aborted transaction wrote is counted here and nowhere else, and a writer's retry is counted twice",
			Hint:    "remove 'properties.isolation.level': the default here is read_committed"})
	}
	if p := x.v.Enum("scan.on-out-of-range"); p != "fail" {
		out = append(out, lint.Finding{Code: "SSQL-W202", Table: x.t.Name, Option: "scan.on-out-of-range",
			Message: fmt.Sprintf("table %s skips records that were deleted before they were read", x.t.Name),
			Detail:  fmt.Sprintf("'scan.on-out-of-range' = '%s': after an outage longer than the topic's retention the job goes on without the rows between, and without an error", p),
			Hint:    "remove the option, so that the job stops and says which offsets are gone; and keep the topic longer than the longest outage"})
	}
	return out
}

func lintTransactions(x *table, c *client, s connectors.LintSpec) (out []lint.Finding) {
	warn := func(code, option, hint, format string, args ...any) *lint.Finding {
		out = append(out, lint.Finding{Code: code, Table: x.t.Name, Option: option, Hint: hint, Message: "table " + x.t.Name + ": " + fmt.Sprintf(format, args...)})
		return &out[len(out)-1]
	}
	given := c.txnTimeoutMs > 0
	timeout := int64(defaultTxnTimeoutMs)
	if given {
		timeout = c.txnTimeoutMs
	}
	warnings, err := checkTimeout(x.t, s.Job, 0, timeout, given)
	switch l := lifeOf(s.Job); {
	case err != nil && given:
		f := lint.FromError(err, "SSQL-E401")
		f.Table, f.Option = x.t.Name, timeoutOption
		out = append(out, f)
	case err != nil || len(warnings) > 0 && !given:
		warn("SSQL-W404", "connector", fmt.Sprintf("raise transaction.max.timeout.ms on the brokers to at least %d, or lower 'execution.checkpointing.timeout'", l.full()),
			"the brokers have to allow longer transactions than they do by default").Detail =
			fmt.Sprintf("%s + downtime %d ms; transaction.max.timeout.ms of an unchanged broker is %d", l.text(timeout), l.downtime, defaultTxnTimeoutMs)
	default:
		out = append(out, warnings...)
	}
	if given && timeout > defaultTxnTimeoutMs {
		warn("SSQL-W405", timeoutOption, fmt.Sprintf("raise transaction.max.timeout.ms on the brokers to at least %d, or remove the option (the default is the brokers' maximum)", timeout),
			"brokers refuse this transaction timeout unless they were changed").Detail =
			fmt.Sprintf("'%s' is %d, transaction.max.timeout.ms of an unchanged broker is %d", timeoutOption, timeout, defaultTxnTimeoutMs)
	}
	if n := x.commitment().Open(s.Parallel, s.Job.MaxConcurrentCheckpoints); n > manyTransactions {
		warn("SSQL-W407", "sink.transaction-scope", "remove 'sink.transaction-scope' (one transaction per checkpoint for the whole job), or set a smaller 'sink.parallelism'",
			"up to %d transactions are open at a time", n).Detail =
			fmt.Sprintf("%d subtasks × (%d concurrent checkpoints + 1); every one is kept by the brokers and holds back readers of its partitions", s.Parallel, max(s.Job.MaxConcurrentCheckpoints, 1))
	}
	flight := max(s.Job.MaxConcurrentCheckpoints, 1)
	need, why := flight+2, "one id is being written, one is prepared per checkpoint in flight, one is committed but still listed in the newest checkpoint"
	if x.v.Has(splitOption) {
		need, why = 2*(flight+1)+1, "two transactions for each checkpoint in flight and for the one that is committed but still listed, and one that is being written ('"+splitOption+"')"
	}
	if n := int(x.v.Int(slotsOption)); n < need {
		warn("SSQL-W408", "sink.transactional-id-slots", fmt.Sprintf("set 'sink.transactional-id-slots' = '%d'", need),
			"%d transactional ids are too few for %d checkpoints at a time: writing waits for one to be free", n, s.Job.MaxConcurrentCheckpoints).Detail =
			why
	}
	if x.v.Enum("sink.recovery.on-lost-transaction") == "ignore" {
		warn("SSQL-W409", "sink.recovery.on-lost-transaction", "remove the option, so that the job stops and lists what is lost",
			"rows of a transaction that timed out are given up where no earlier checkpoint replaces it").Detail =
			"'sink.recovery.on-lost-transaction' = 'ignore': the checkpoint lists the transaction, and a restore goes on without it; it is put on record"
	}
	return out
}

// claims is Connector.Claims: a prefix that the table names itself. The default has the job's lineage in it.
func claims(t *catalog.Table, m connectors.SinkMode) []connectors.Claim {
	p, ok := t.Options.Get("sink.transactional-id-prefix")
	if !ok || m.Delivery != connectors.TwoPhaseCommit {
		return nil
	}
	servers, _ := t.Options.Get(propertyPrefix + "bootstrap.servers")
	return []connectors.Claim{{Key: "kafka\x00" + servers + "\x00" + p, What: "transactional prefix '" + p + "'", Option: "sink.transactional-id-prefix"}}
}

// replay is Connector.Replay.
func replay(t *catalog.Table, upsert bool) (connectors.Replay, error) {
	x, err := parseTable(t, upsert)
	if err != nil {
		return connectors.Replay{}, err
	}
	c, err := newClient(t, "embedded:0", nil)
	if err != nil {
		return connectors.Replay{}, err
	}
	r := connectors.Replay{Position: "the offset of every partition and the id of the topic"}
	weaken := func(g connectors.Guarantee, format string, args ...any) {
		r.Worth = max(r.Worth, g)
		r.Weakness = append(r.Weakness, fmt.Sprintf(format, args...))
	}
	if c.isolation == kgo.ReadUncommitted() {
		weaken(connectors.CanRepeat, "rows of open and aborted transactions are read ('properties.isolation.level' = 'read_uncommitted')")
	}
	if p := x.v.Enum("scan.on-out-of-range"); p != "fail" {
		weaken(connectors.CanLose, "records that were deleted before they were read are skipped ('scan.on-out-of-range' = '%s')", p)
	}
	if p := x.v.Enum("scan.on-error"); p != "fail" {
		r.Weakness = append(r.Weakness, fmt.Sprintf("records that cannot be decoded are left out, and counted ('scan.on-error' = '%s')", p))
	}
	return r, nil
}

// commitment is what EXPLAIN GUARANTEES says of transactions.
func (x *table) commitment() connectors.Commitment {
	ends := "the broker aborts a transaction older than its timeout; the restore proves that and goes back one checkpoint when nothing of the newest is visible, else it stops and says what"
	worth := connectors.ExactlyOnce
	if x.v.Enum("sink.recovery.on-lost-transaction") == "ignore" {
		ends = "the broker aborts a transaction older than its timeout; the restore goes back one checkpoint when that is exact, else the rows are given up, on record ('sink.recovery.on-lost-transaction' = 'ignore')"
		worth = connectors.CanLose
	}
	return connectors.Commitment{
		Held:       "in the topic, inside the transaction; the broker's coordinator keeps it through crashes of the job and of the broker",
		ID:         "transactional id, producer id, epoch, transaction version, start, and the offset of a record of it",
		Known:      "the control marker behind that record in the topic's log: commit or abort; EndTxn with the stored identity may be repeated",
		Ends:       ends,
		Worth:      worth,
		Unit:       "Kafka transactions",
		PerSubtask: x.v.Enum("sink.transaction-scope") == "subtask",
	}
}

// behind is who is outside the guarantee behind a topic.
func behind(t *catalog.Table) string {
	topic, _ := t.Options.Get("topic")
	return "consumers of topic " + strings.ReplaceAll(topic, ";", ", ") + " with isolation.level = read_uncommitted (the Java client's default), and what consumers do with the rows"
}
