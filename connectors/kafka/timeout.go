package kafka

import (
	"fmt"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/lint"
)

// txnMargin is added to interval and timeout of checkpoints: time for the commit itself and for clocks that differ.
const txnMargin = 60 * time.Second

const timeoutOption = propertyPrefix + "transaction.timeout.ms"

// life is how long a transaction may have to live, in milliseconds: from its first row to its commit, through a
// checkpoint that takes all of its time and, to be safe, an outage.
type life struct{ interval, checkpoint, downtime, margin int64 }

func lifeOf(job connectors.JobInfo) life {
	return life{job.CheckpointInterval, job.CheckpointTimeout, job.MaxDowntime, txnMargin.Milliseconds()}
}

// least is without an outage, full with one.
func (l life) least() int64 { return l.interval + l.checkpoint + l.margin }
func (l life) full() int64  { return l.least() + l.downtime }

func (l life) text(timeout int64) string {
	return fmt.Sprintf("transaction timeout %d ms < checkpoint interval %d ms + checkpoint timeout %d ms + margin %d ms = %d ms", timeout, l.interval, l.checkpoint, l.margin, l.least())
}

// checkTimeout refuses a transaction timeout that checkpoints can outlive, and one the brokers refuse, and warns of one
// that the longest outage can outlive. brokerMax is 0 where it is not known; given says that the table sets the timeout.
func checkTimeout(t *catalog.Table, job connectors.JobInfo, brokerMax, timeout int64, given bool) ([]lint.Finding, error) {
	pos := t.Options.Pos(timeoutOption)
	if brokerMax > 0 && timeout > brokerMax {
		return nil, diag.New(diag.Config, pos, "table %s: transaction timeout is larger than the brokers allow", t.Name).
			WithDetail("'%s' is %d, transaction.max.timeout.ms of the brokers is %d", timeoutOption, timeout, brokerMax).
			WithHint("remove the option (the default is the brokers' maximum), set it to at most %d, or raise transaction.max.timeout.ms on the brokers", brokerMax).
			WithRule("SSQL-E603")
	}
	l := lifeOf(job)
	if job.CheckpointInterval == 0 || timeout >= l.full() {
		return nil, nil
	}
	if timeout >= l.least() {
		return []lint.Finding{l.outage(t, brokerMax, timeout, given)}, nil
	}
	e := diag.New(diag.Config, pos, "table %s: a transaction can time out before its checkpoint commits it", t.Name).
		WithDetail("%s%s", l.text(timeout), maxText(brokerMax)).WithRule("SSQL-E401")
	if l.checkpoint >= timeout {
		e.WithRule("SSQL-E402")
	}
	if given && (brokerMax == 0 || brokerMax >= l.full()) {
		return nil, e.WithHint("set '%s' = '%d' (%d ms to survive an outage of %d ms, too) or remove it (the default is the brokers' maximum)",
			timeoutOption, l.full(), l.full(), l.downtime)
	}
	room := timeout - l.margin - l.interval
	if room > 0 {
		return nil, e.WithHint("SET 'execution.checkpointing.timeout' = '%d s', or raise transaction.max.timeout.ms on the brokers to at least %d", room/1000, l.full())
	}
	return nil, e.WithHint("raise transaction.max.timeout.ms on the brokers to at least %d, or lower 'execution.checkpointing.interval' and 'execution.checkpointing.timeout'", l.full())
}

// outage is the warning of a timeout that checkpoints fit into, but not the longest outage as well.
func (l life) outage(t *catalog.Table, brokerMax, timeout int64, given bool) lint.Finding {
	f := lint.Finding{Code: "SSQL-W403", Table: t.Name, Option: timeoutOption,
		Message: fmt.Sprintf("table %s: a transaction can time out while the job is down", t.Name),
		Detail: fmt.Sprintf("transaction timeout %d ms < checkpoint interval %d ms + checkpoint timeout %d ms + downtime %d ms ('streamsql.max-downtime') + margin %d ms = %d ms; "+
			"what timed out is written again from the checkpoint before, if nothing of the newest was committed", timeout, l.interval, l.checkpoint, l.downtime, l.margin, l.full()),
		Hint: fmt.Sprintf("set '%s' = '%d' or more", timeoutOption, l.full())}
	if !given || brokerMax > 0 && brokerMax < l.full() {
		f.Hint = fmt.Sprintf("raise transaction.max.timeout.ms on the brokers to at least %d, or lower 'execution.checkpointing.timeout'", l.full())
	}
	return f
}

// maxText tells the brokers' maximum where it is known.
func maxText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("; brokers allow up to %d ms", ms)
}
