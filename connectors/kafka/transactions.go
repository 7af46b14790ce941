package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// transactions looks after what jobs left open on a cluster. It acts on one transaction at a time by its exact identity
// (id, producer id, epoch), never by initialising an id, and under the lease of the id's prefix.
type transactions struct {
	c      *client
	t      *catalog.Table
	log    *slog.Logger
	cl     *kgo.Client
	k      cluster
	adm    admins
	leases map[string]*lease // by prefix
}

// defaultID is a transactional id under the prefix that a job has unless the table names another: the name of the job,
// perhaps of the table, the lineage, the subtask, the slot.
var defaultID = regexp.MustCompile(`^streamsql-(.+)-([0-9a-f]{32})-[0-9]+-[0-9]+$`)

func openTransactions(t *catalog.Table, embedded string, log *slog.Logger) (connectors.TxnSystem, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c, err := newClient(t, embedded, log)
	if err != nil {
		return nil, err
	}
	return &transactions{c: c, t: t, log: log, adm: admins{c: c}, leases: map[string]*lease{}}, nil
}

// Name implements connectors.TxnSystem.
func (x *transactions) Name() string { return "kafka at " + strings.Join(x.c.servers, ",") }

func (x *transactions) connect(ctx context.Context) error {
	if x.cl != nil {
		return nil
	}
	cl, err := connect(ctx, x.c)
	if err != nil {
		return err
	}
	if x.k, err = inspect(ctx, cl); err != nil {
		cl.Close()
		return err
	}
	x.cl = cl
	return nil
}

// List implements connectors.TxnSystem.
func (x *transactions) List(ctx context.Context, prefixes []string) ([]connectors.Txn, error) {
	if err := x.connect(ctx); err != nil {
		return nil, err
	}
	adm := kadm.NewClient(x.cl)
	listed, err := adm.ListTransactions(ctx, nil, []string{"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "%s does not list transactions", x.Name()).Wrap(err).
			WithHint("listing needs Kafka 3.0 or newer and DESCRIBE on the transactional ids")
	}
	var ids []string
	for id := range listed {
		if defaultID.MatchString(id) || slices.Contains(prefixes, prefixOf(id)) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil // asked for none, kadm describes all
	}
	slices.Sort(ids)
	described, err := adm.DescribeTransactions(ctx, ids...)
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "%s does not describe transactions", x.Name()).Wrap(err)
	}
	live := map[string]string{}
	var out []connectors.Txn
	for _, id := range ids {
		d := described[id]
		if d.Err != nil {
			return nil, diag.New(diag.External, diag.Pos{}, "%s does not describe transaction %s", x.Name(), id).Wrap(d.Err)
		}
		if !open(d.State) {
			continue // it has ended in between
		}
		p := prefixOf(id)
		if _, asked := live[p]; !asked {
			if live[p], err = x.holder(ctx, p); err != nil {
				return nil, err
			}
		}
		t := x.describe(&d, x.heldBack(ctx, adm, d.Topics))
		t.Live = live[p]
		out = append(out, t)
	}
	return out, nil
}

func open(state string) bool { return state == "Ongoing" || strings.HasPrefix(state, "Prepare") }

// heldBack is how many records of each partition no reader of committed records sees yet, because the oldest open
// transaction there begins before them: the high watermark less the last stable offset. nil = the offsets may not be read.
func (x *transactions) heldBack(ctx context.Context, adm *kadm.Client, of kadm.TopicsSet) map[string]int64 {
	stable, err := adm.ListCommittedOffsets(ctx, of.Topics()...)
	ends, err2 := adm.ListEndOffsets(ctx, of.Topics()...)
	if err != nil || err2 != nil || len(of) == 0 {
		return nil
	}
	out := map[string]int64{}
	of.Each(func(topic string, p int32) {
		s, ok := stable.Lookup(topic, p)
		e, ok2 := ends.Lookup(topic, p)
		if ok && ok2 && s.Err == nil && e.Err == nil {
			out[fmt.Sprintf("%s-%d", topic, p)] = e.Offset - s.Offset
		}
	})
	return out
}

func (x *transactions) describe(d *kadm.DescribedTransaction, held map[string]int64) connectors.Txn {
	t := connectors.Txn{
		ID: d.TxnID, System: x.Name(), State: d.State, Timeout: time.Duration(d.TimeoutMillis) * time.Millisecond,
		Identity: x.identity(d.TxnID, d.ProducerID, d.ProducerEpoch), Unique: x.k.tv >= 2, Final: d.State != "Ongoing",
	}
	if m := defaultID.FindStringSubmatch(d.TxnID); m != nil {
		t.Job, t.Lineage = m[1], m[2]
	}
	if d.StartTimestamp > 0 {
		t.Started = time.UnixMilli(d.StartTimestamp)
	}
	var topics []string
	for topic, parts := range d.Topics {
		for p := range parts {
			name := fmt.Sprintf("%s-%d", topic, p)
			if n, ok := held[name]; ok {
				name += fmt.Sprintf(" (holds back %d records)", n)
			}
			topics = append(topics, name)
		}
	}
	slices.Sort(topics)
	t.Detail = fmt.Sprintf("producer %d epoch %d, partitions %s", d.ProducerID, d.ProducerEpoch, strings.Join(topics, ", "))
	return t
}

// holder names the members of the prefix's lease.
func (x *transactions) holder(ctx context.Context, prefix string) (string, error) {
	hs, err := leaseHolders(ctx, x.cl, leaseGroup(prefix), "")
	if err != nil {
		if forbidden(err) {
			return "", diag.New(diag.External, diag.Pos{}, "%s does not tell whether a live job uses the transactional prefix %s", x.Name(), prefix).Wrap(err).
				WithHint("grant DESCRIBE on the group %s", leaseGroup(prefix))
		}
		return "", err
	}
	var names []string
	for _, h := range hs {
		names = append(names, h.String())
	}
	return strings.Join(names, "; "), nil
}

func (x *transactions) identity(id string, pid int64, epoch int16) string {
	return fmt.Sprintf("kafka %s %s %d %d", x.k.id, id, pid, epoch)
}

// Belongs implements connectors.TxnSystem. A prefix that a job's table configures is the job's own, whatever its lineage:
// its next start would abort what is open under it.
func (x *transactions) Belongs(t *connectors.Txn, o *connectors.TxnOwner) (job, lineage bool) {
	for _, l := range o.Lineages {
		if t.Lineage != "" && unsafeInID.ReplaceAllString(l, "") == t.Lineage {
			return true, true
		}
	}
	p := prefixOf(t.ID)
	if slices.Contains(o.Prefixes, p) {
		return true, true
	}
	for i := range o.Listed {
		if r, err := decodeTxnRef(o.Listed[i].Payload); err == nil && prefixOf(r.id) == p {
			return true, true
		}
	}
	for _, n := range o.Names {
		n = unsafeInID.ReplaceAllString(n, "_")
		if t.Job == n || strings.HasPrefix(t.Job, n+"-") {
			return true, false
		}
	}
	return false, false
}

// Identity implements connectors.TxnSystem.
func (x *transactions) Identity(c *checkpoint.Committable) (string, bool) {
	r, err := decodeTxnRef(c.Payload)
	if err != nil || r.clusterID != "" && x.k.id != "" && r.clusterID != x.k.id {
		return "", false
	}
	return x.identity(r.id, r.pid, r.epoch), true
}

// Describe implements connectors.TxnSystem.
func (x *transactions) Describe(c *checkpoint.Committable, now time.Time) string {
	text, err := DescribeCommittable(c.Payload, now)
	if err != nil {
		return err.Error()
	}
	return text
}

// Outcome implements connectors.TxnSystem.
func (x *transactions) Outcome(ctx context.Context, c *checkpoint.Committable) (checkpoint.Outcome, string, error) {
	if isAhead(c.Payload) {
		return x.outcomeAhead(ctx, c)
	}
	r, err := decodeTxnRef(c.Payload)
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	o, why, err := probe(ctx, x.c, &r)
	if err != nil {
		return o, why, diag.New(diag.External, diag.Pos{}, "kafka: the outcome of %s cannot be read", r.String()).Wrap(err)
	}
	return o, why, nil
}

// lease takes the prefix from jobs that start meanwhile. It waits for an owner that was killed and looks alive.
func (x *transactions) lease(ctx context.Context, prefix string) error {
	if x.leases[prefix] != nil {
		return nil
	}
	host, _ := os.Hostname()
	who := holder{Job: "streamsql txn", Host: host, PID: os.Getpid(), Started: time.Now().UnixMilli()}
	l, err := takeLease(ctx, x.c, prefix, who, leaseWait, x.log)
	if err != nil {
		return err
	}
	x.leases[prefix] = l
	return nil
}

// Abort implements connectors.TxnSystem.
func (x *transactions) Abort(ctx context.Context, t *connectors.Txn) error {
	if err := x.connect(ctx); err != nil {
		return err
	}
	if err := x.lease(ctx, prefixOf(t.ID)); err != nil {
		return err
	}
	adm, err := x.adm.get(x.k.tv)
	if err != nil {
		return err
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		ds, err := kadm.NewClient(x.cl).DescribeTransactions(ctx, t.ID)
		d := ds[t.ID]
		if err = errors.Join(err, d.Err); err != nil {
			return diag.New(diag.External, diag.Pos{}, "%s does not describe transaction %s", x.Name(), t.ID).Wrap(err)
		}
		if !open(d.State) {
			return nil
		}
		if x.identity(t.ID, d.ProducerID, d.ProducerEpoch) != t.Identity {
			return diag.New(diag.Conflict, diag.Pos{}, "transactional id %s has another transaction by now", t.ID).
				WithDetail("it is producer %d epoch %d", d.ProducerID, d.ProducerEpoch).WithHint("list again")
		}
		ref := txnRef{id: t.ID, pid: d.ProducerID, epoch: d.ProducerEpoch}
		if err = endTxn(ctx, adm, &ref, false); err == nil {
			return nil
		}
		// Ended meanwhile, or on its way to: the next look tells.
		x.log.Warn("kafka: abort is not confirmed yet", "transaction", t.ID, "error", err)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// committer is one that needs no job.
func (x *transactions) committer(c *checkpoint.Committable) *committer {
	return newCommitter(&sink{spec: connectors.SinkSpec{ID: c.Sink, Table: x.t}, c: x.c, log: x.log, k: &x.k}, x.adm)
}

// outcomeAhead looks for the marker, without taking anything from a job that may be alive.
func (x *transactions) outcomeAhead(ctx context.Context, c *checkpoint.Committable) (checkpoint.Outcome, string, error) {
	ref, err := decodeAhead(c.Payload)
	if err == nil {
		err = x.connect(ctx)
	}
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	k := x.committer(c)
	defer k.ahead.close()
	return k.ahead.outcome(ctx, &aheadItem{ref, markerOf(c)})
}

// Commit implements connectors.TxnSystem.
func (x *transactions) Commit(ctx context.Context, c *checkpoint.Committable) error {
	k := x.committer(c)
	if isAhead(c.Payload) {
		a, err := decodeAhead(c.Payload)
		if err == nil {
			err = x.connect(ctx)
		}
		if err == nil {
			err = x.lease(ctx, prefixOf(a.id))
		}
		if err != nil {
			return err
		}
		defer func() { k.ahead.close(); x.adm = k.adm }()
		return k.ahead.commit(ctx, []checkpoint.Committable{*c})
	}
	r, err := decodeTxnRef(c.Payload)
	if err != nil {
		return err
	}
	if err := x.lease(ctx, prefixOf(r.id)); err != nil {
		return err
	}
	defer func() { x.adm = k.adm }()
	return k.commitOne(ctx, &r)
}

// Close implements connectors.TxnSystem.
func (x *transactions) Close() error {
	for _, l := range x.leases {
		l.release()
	}
	x.adm.close()
	if x.cl != nil {
		x.cl.Close()
	}
	return nil
}
