package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// simBroker is the model of Kafka's transactions. Its answers are those that real brokers gave (docs/kafka-endtxn.md).
type simBroker struct {
	w    *simWorld
	ids  map[string]*simProducerID
	list []string // of ids, in the order of their first use
	txns []*simTxn
	open []*simTxn // undecided, or decided with the control record on its way
	log  []simRecord
}

// simProducerID is a transactional id with its producer.
type simProducerID struct {
	epoch int
	txn   *simTxn // the newest since the id was initialised
}

type simTxn struct {
	index, epoch int
	id           string
	outcome      checkpoint.Outcome // of the control record in the log
	began        int
	decided      int // when the control record is written, 0 = not decided
	commit       bool
	expired      bool
}

type simRecord struct {
	row  int // 0: a marker
	mark string
	txn  *simTxn
}

// simAnswer is an error code of the broker.
type simAnswer string

const (
	answerNone       simAnswer = "NONE"
	answerConcurrent simAnswer = "CONCURRENT_TRANSACTIONS"
	answerFenced     simAnswer = "PRODUCER_FENCED"
	answerState      simAnswer = "INVALID_TXN_STATE"
	answerMapping    simAnswer = "INVALID_PRODUCER_ID_MAPPING"
	answerMissing    simAnswer = "no answer"
)

func (x simAnswer) undecided() bool {
	return x == answerFenced || x == answerState || x == answerMapping
}

// expire writes control records that are due and aborts what is open for too long.
func (b *simBroker) expire() {
	if len(b.open) == 0 {
		return
	}
	now := b.w.now
	b.open = slices.DeleteFunc(b.open, func(x *simTxn) bool {
		switch {
		case x.decided != 0 && now >= x.decided:
			if x.outcome = checkpoint.OutcomeAborted; x.commit {
				x.outcome = checkpoint.OutcomeCommitted
			}
		case x.decided == 0 && now-x.began > b.w.timeout:
			x.outcome, x.expired = checkpoint.OutcomeAborted, true
			x.decided = now
			b.ids[x.id].epoch++
		}
		return x.outcome != checkpoint.OutcomeOpen
	})
}

func (b *simBroker) decide(x *simTxn, commit bool) {
	x.commit, x.decided = commit, b.w.now+b.w.r.IntN(5)
	b.expire()
}

// under reports whether x is decided and its control record not written.
func (x *simTxn) under() bool { return x.decided != 0 && x.outcome == checkpoint.OutcomeOpen }

// init initialises id: what is open is aborted, its producer fenced.
func (b *simBroker) init(id string) (epoch int, answer simAnswer) {
	p := b.ids[id]
	if p == nil {
		b.ids[id] = &simProducerID{}
		b.list = append(b.list, id)
		return 0, answerNone
	}
	if x := p.txn; x != nil {
		if x.outcome == checkpoint.OutcomeOpen && x.decided == 0 {
			b.decide(x, false)
		}
		if x.under() {
			return 0, answerConcurrent
		}
	}
	p.txn = nil
	p.epoch++
	return p.epoch, answerNone
}

// produce appends a record to x, or to a new transaction when x is nil.
func (b *simBroker) produce(id string, epoch int, x *simTxn, row int, mark string) (*simTxn, simAnswer) {
	p := b.ids[id]
	switch {
	case p == nil:
		return nil, answerMapping
	case p.epoch != epoch:
		return nil, answerFenced
	case x != nil && (p.txn != x || x.outcome != checkpoint.OutcomeOpen || x.decided != 0):
		return nil, answerState
	case x == nil && p.txn != nil && p.txn.outcome == checkpoint.OutcomeOpen:
		return nil, answerConcurrent
	case x == nil:
		x = &simTxn{index: len(b.txns), id: id, epoch: epoch, began: b.w.now}
		p.txn = x
		b.txns, b.open = append(b.txns, x), append(b.open, x)
	}
	b.log = append(b.log, simRecord{row, mark, x})
	return x, answerNone
}

// endTxn is EndTxn of either protocol.
func (b *simBroker) endTxn(id string, epoch int, commit bool) simAnswer {
	p := b.ids[id]
	if p == nil {
		return answerMapping
	}
	x := p.txn
	switch {
	case x != nil && x.under() && x.epoch == epoch:
		return answerConcurrent
	case x != nil && x.outcome == checkpoint.OutcomeOpen && x.decided == 0 && epoch == p.epoch:
		if b.w.tv >= 2 {
			p.epoch++
		}
		b.decide(x, commit)
		return answerNone
	case x != nil && x.epoch == epoch && (epoch == p.epoch || b.w.tv >= 2 && epoch+1 == p.epoch):
		if !x.expired && (x.outcome == checkpoint.OutcomeCommitted) == commit {
			return answerNone
		}
		return answerState
	case epoch == p.epoch:
		return answerState // nothing was written
	}
	return answerFenced
}

// visible are the rows of committed transactions in the order of the log.
func (b *simBroker) visible() (rows []int) {
	b.expire()
	for _, r := range b.log {
		if r.row != 0 && r.txn.outcome == checkpoint.OutcomeCommitted {
			rows = append(rows, r.row)
		}
	}
	return rows
}

func (b *simBroker) leftover() string {
	if len(b.open) > 0 && b.w.hangs == 0 { // a process that woke up may have begun one; its timeout ends it
		return "transaction of id " + b.open[0].id + " is left open"
	}
	return ""
}

// init initialises an id for the process; the answer may take some time.
func (a *simAttempt) init(id string) (epoch int) {
	for {
		a.step()
		if a.zombie && !a.owns() {
			a.w.overrun = true
		}
		epoch, answer := a.w.kafka.init(id)
		if answer == answerNone {
			return epoch
		}
	}
}

// endTxn sends EndTxn(commit) until there is an answer that says something, a few times.
func (a *simAttempt) endTxn(id string, epoch int) simAnswer {
	for range 4 {
		answer := answerMissing
		if !a.request(func() { answer = a.w.kafka.endTxn(id, epoch, true) }) {
			continue
		}
		if answer != answerConcurrent {
			return answer
		}
	}
	return answerMissing
}

// simTxnTarget is Kafka with two-phase commit: connectors/kafka's committer.go, txn.go, slot.go and probe.go as a model.
type simTxnTarget struct{ w *simWorld }

func (t *simTxnTarget) visible() []int   { return t.w.kafka.visible() }
func (t *simTxnTarget) leftover() string { return t.w.kafka.leftover() }
func (t *simTxnTarget) committer(a *simAttempt) checkpoint.Committer {
	return &simTxnCommitter{a: a, w: t.w}
}

type simTxnCommitter struct {
	a *simAttempt
	w *simWorld
}

func (c *simTxnCommitter) Close() error { return nil }

func (c *simTxnCommitter) txn(p checkpoint.Committable) *simTxn {
	i, err := strconv.Atoi(string(p.Payload))
	if err != nil {
		panic(err)
	}
	return c.w.kafka.txns[i]
}

// probe reads the control record.
func (c *simTxnCommitter) probe(x *simTxn) checkpoint.Outcome {
	c.a.step()
	if c.w.wrong == "fenced counts as committed" && x.outcome == checkpoint.OutcomeAborted {
		return checkpoint.OutcomeCommitted
	}
	return x.outcome
}

func (c *simTxnCommitter) Classify(ctx context.Context, cs []checkpoint.Committable) (out []checkpoint.Outcome, err error) {
	for _, p := range cs {
		out = append(out, c.probe(c.txn(p)))
	}
	return out, nil
}

func (c *simTxnCommitter) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	for _, p := range cs {
		c.a.step()
		x := c.txn(p)
		answer := c.a.endTxn(x.id, x.epoch)
		if answer == answerNone {
			continue
		}
		if !answer.undecided() {
			return errors.New("the request timed out")
		}
		switch c.probe(x) {
		case checkpoint.OutcomeCommitted:
		case checkpoint.OutcomeOpen:
			return errors.New("undecided")
		default:
			return diag.New(diag.Lost, diag.Pos{}, "the transaction on %s was aborted by the broker", x.id)
		}
	}
	return nil
}

func (c *simTxnCommitter) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	c.a.step()
	if !c.a.owns() {
		return errOwned()
	}
	spared := map[string]bool{}
	for _, p := range keep {
		if x := c.txn(p); x.outcome == checkpoint.OutcomeOpen {
			spared[x.id] = true
		}
	}
	for _, id := range slices.Clone(c.w.kafka.list) {
		if x := c.w.kafka.ids[id].txn; c.w.unique && (x == nil || x.outcome != checkpoint.OutcomeOpen) {
			continue
		}
		if !spared[id] {
			c.a.init(id)
		}
	}
	return nil
}

// simGroup shares transactions between writers, as txnGroup does.
type simGroup struct {
	a       *simAttempt
	w       *simWorld
	name    string
	slots   []*simSlot
	open    map[checkpoint.ID]*simSlot
	members []*simTxnWriter
	barrier checkpoint.ID
	made    int
}

type simSlotState uint8

const (
	slotFree simSlotState = iota
	slotOpen
	slotPrepared
	slotCommitted
	slotBurned // its producer met an error
)

// simSlot is a transactional id with its producer.
type simSlot struct {
	id     string
	epoch  int
	state  simSlotState
	after  checkpoint.ID
	ckpt   checkpoint.ID // of the last prepared transaction
	listed checkpoint.ID
	txn    *simTxn
}

type simTxnWriter struct {
	g       *simGroup
	subtask int
	after   checkpoint.ID
}

func (t *simTxnTarget) writers(a *simAttempt, n int) (out []simWriter) {
	var g *simGroup
	for i := range n {
		if g == nil || t.w.scope == "subtask" {
			g = &simGroup{a: a, w: t.w, name: fmt.Sprint("p-", i), open: map[checkpoint.ID]*simSlot{}}
			for s := range 5 {
				if !t.w.unique {
					id := fmt.Sprint(g.name, "-", s)
					g.slots = append(g.slots, &simSlot{id: id, epoch: a.init(id)})
				}
			}
		}
		m := &simTxnWriter{g: g, subtask: i}
		g.members = append(g.members, m)
		out = append(out, m)
	}
	return out
}

// acquire is the transaction for rows behind barrier after.
func (g *simGroup) acquire(after checkpoint.ID) *simSlot {
	if s := g.open[after]; s != nil {
		return s
	}
	var free *simSlot
	if g.w.unique {
		g.made++
		id := fmt.Sprintf("%s-%d-%d", g.name, g.a.n, g.made)
		free = &simSlot{id: id, epoch: g.a.init(id)}
		g.slots = append(g.slots, free)
	} else {
		i := slices.IndexFunc(g.slots, func(s *simSlot) bool { return s.state == slotFree })
		if i < 0 {
			g.a.fail("no transactional id is free")
		}
		free = g.slots[i]
	}
	free.state, free.after, free.txn = slotOpen, after, nil
	g.open[after] = free
	return free
}

func (m *simTxnWriter) write(row int) {
	g := m.g
	s := g.acquire(m.after)
	for {
		x, answer := g.w.kafka.produce(s.id, s.epoch, s.txn, row, "")
		switch answer {
		case answerNone:
			s.txn = x
			return
		case answerConcurrent:
			g.a.step()
		default:
			g.a.fail("the broker refuses a record: %s", string(answer))
		}
	}
}

func (m *simTxnWriter) preCommit(id checkpoint.ID) (out []checkpoint.Committable) {
	g := m.g
	m.after, g.barrier = id, max(g.barrier, id)
	oldest := g.barrier
	for _, o := range g.members {
		oldest = min(oldest, o.after)
	}
	var done []*simSlot
	for e, s := range g.open {
		if e < oldest {
			done = append(done, s)
			delete(g.open, e)
		}
	}
	slices.SortFunc(done, func(a, b *simSlot) int { return cmp.Compare(a.after, b.after) })
	for _, s := range done {
		s.state, s.ckpt, s.listed = slotPrepared, id, ^checkpoint.ID(0)
		out = append(out, g.a.committable(id, m.subtask, strconv.Itoa(s.txn.index))...)
	}
	return out
}

// committed: a slot is free when a manifest newer than every barrier of now is durable.
func (m *simTxnWriter) committed(id checkpoint.ID) {
	g := m.g
	if m != g.members[0] {
		return
	}
	for _, s := range g.slots {
		if s.state == slotPrepared && s.ckpt <= id {
			if g.w.tv < 2 {
				s.state = slotCommitted
				continue
			}
			if g.w.kafka.endTxn(s.id, s.epoch, true) != answerNone {
				s.state = slotBurned
				continue
			}
			s.state = slotCommitted
			s.epoch++
		}
	}
	for _, s := range g.slots {
		switch {
		case s.state != slotCommitted || s.ckpt > id:
		case g.w.unique:
			s.state = slotBurned
		case s.listed == ^checkpoint.ID(0):
			s.listed = g.barrier
		case s.listed < id:
			if g.w.tv < 2 && g.w.wrong != "pooled ids without re-init" {
				g.renew(s)
			} else {
				s.state = slotFree
			}
		}
	}
	if g.w.unique {
		g.slots = slices.DeleteFunc(g.slots, func(s *simSlot) bool { return s.state == slotBurned })
	}
}

// renew is renew.go: the process that still owns the job initialises the id for its next transaction. Where a run may stop, the
// request can come once more, late: it aborts what is open by then.
func (g *simGroup) renew(s *simSlot) {
	if !g.a.owns() {
		s.state = slotBurned
		return
	}
	s.epoch, s.state = g.a.init(s.id), slotFree
	if g.w.mayHalt && g.w.chance(9) {
		g.w.delay(func() { g.w.kafka.init(s.id) })
	}
}

// simAheadTarget is Kafka with the records kept in checkpoints: connectors/kafka's aheadcommit.go as a model.
type simAheadTarget struct{ w *simWorld }

func (t *simAheadTarget) visible() []int   { return t.w.kafka.visible() }
func (t *simAheadTarget) leftover() string { return t.w.kafka.leftover() }
func (t *simAheadTarget) committer(a *simAttempt) checkpoint.Committer {
	return &simAheadCommitter{a: a, w: t.w}
}

func (t *simAheadTarget) writers(a *simAttempt, n int) (out []simWriter) {
	for i := range n {
		out = append(out, &simKeeper{a: a, subtask: i})
	}
	return out
}

// simKeeper is the writer of rows that are kept in the checkpoint.
type simKeeper struct {
	a       *simAttempt
	subtask int
	rows    []int
}

func (k *simKeeper) write(row int)           { k.rows = append(k.rows, row) }
func (k *simKeeper) committed(checkpoint.ID) {}
func (k *simKeeper) preCommit(id checkpoint.ID) []checkpoint.Committable {
	if len(k.rows) == 0 {
		return nil
	}
	text := rowsText(k.rows)
	k.rows = nil
	return k.a.committable(id, k.subtask, text)
}

type simAheadCommitter struct {
	a     *simAttempt
	w     *simWorld
	swept bool
	kept  map[string]bool
}

func (c *simAheadCommitter) Close() error { return nil }

func aheadID(p checkpoint.Committable) string { return fmt.Sprint("ahead-", p.Subtask) }

// take makes this process the only one that can commit on the ids of cs.
func (c *simAheadCommitter) take(cs []checkpoint.Committable) (epochs map[string]int, err error) {
	epochs = map[string]int{}
	for _, p := range cs {
		id := aheadID(p)
		if _, ok := epochs[id]; !ok {
			epochs[id] = c.a.init(id)
		}
	}
	c.a.step()
	if !c.a.owns() {
		return nil, errOwned()
	}
	return epochs, nil
}

// marks reads the markers that are committed.
func (c *simAheadCommitter) marks() map[string]bool {
	c.a.step()
	out := map[string]bool{}
	for _, r := range c.w.kafka.log {
		if r.mark != "" && r.txn.outcome == checkpoint.OutcomeCommitted && c.w.wrong != "no marker row" {
			out[r.mark] = true
		}
	}
	return out
}

func (c *simAheadCommitter) Classify(ctx context.Context, cs []checkpoint.Committable) (out []checkpoint.Outcome, err error) {
	if _, err := c.take(cs); err != nil {
		return nil, err
	}
	marks := c.marks()
	for _, p := range cs {
		switch m := c.w.mark(p); {
		case marks[m]:
			out = append(out, checkpoint.OutcomeCommitted)
		case c.swept && !c.kept[m]:
			out = append(out, checkpoint.OutcomeAborted)
		default:
			out = append(out, checkpoint.OutcomeOpen)
		}
	}
	return out, nil
}

func (c *simAheadCommitter) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	for range 4 {
		done, err := c.round(cs)
		if done || err != nil {
			return err
		}
	}
	return errors.New("commit is not confirmed")
}

// round is one try; false means to start over.
func (c *simAheadCommitter) round(cs []checkpoint.Committable) (done bool, err error) {
	var marks map[string]bool
	if c.w.wrong == "progress read before fencing" {
		marks = c.marks()
	}
	epochs, err := c.take(cs)
	if err != nil {
		return false, err
	}
	if marks == nil {
		marks = c.marks()
	}
	var ids []string
	todo := map[string][]checkpoint.Committable{}
	for _, p := range cs {
		if marks[c.w.mark(p)] {
			continue
		}
		id := aheadID(p)
		if todo[id] == nil {
			ids = append(ids, id)
		}
		todo[id] = append(todo[id], p)
	}
	for _, id := range ids {
		var x *simTxn
		for _, p := range todo[id] {
			for _, row := range append(parseRows(string(p.Payload)), 0) {
				mark := ""
				if row == 0 {
					mark = c.w.mark(p)
				}
				var answer simAnswer
				if x, answer = c.w.kafka.produce(id, epochs[id], x, row, mark); answer != answerNone {
					return false, nil
				}
			}
			c.a.step()
		}
		if answer := c.a.endTxn(id, epochs[id]); answer != answerNone {
			return false, nil
		}
	}
	return true, nil
}

func (c *simAheadCommitter) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	c.a.step()
	if !c.a.owns() {
		return errOwned()
	}
	for _, id := range slices.Clone(c.w.kafka.list) {
		if strings.HasPrefix(id, "ahead-") {
			c.a.init(id)
		}
	}
	c.swept, c.kept = true, map[string]bool{}
	for _, p := range keep {
		c.kept[c.w.mark(p)] = true
	}
	return nil
}
