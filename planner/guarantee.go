package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Guarantees is what EXPLAIN GUARANTEES prints: what a job is worth after a failure, from each table read to each table written.
type Guarantees struct {
	Job   string          `json:"job"`
	Sinks []SinkGuarantee `json:"sinks"`
	// OnRecord are the guarantees that earlier runs of the job gave up.
	OnRecord []string `json:"on_record,omitempty"`
}

// SinkGuarantee is about one table written.
type SinkGuarantee struct {
	Table     string               `json:"table"`
	Delivery  string               `json:"delivery"`
	Guarantee connectors.Guarantee `json:"guarantee"`
	Weakest   string               `json:"weakest"` // the segment that decides the guarantee; "" when none is weaker than exactly once
	Segments  []Segment            `json:"segments"`
	Questions []Question           `json:"questions"`
	Latency   Latency              `json:"latency"`
	// OpenTransactions is how many there can be at a time, 0 without transactions; Unit is what they are.
	OpenTransactions int        `json:"open_transactions,omitempty"`
	Unit             string     `json:"transaction_unit,omitempty"`
	Retention        []string   `json:"retention,omitempty"` // how long state remembers what makes a repeated row harmless
	Replay           []Replayed `json:"replay,omitempty"`
	Outside          []string   `json:"outside"`
}

// Segment is a part of the way of a row: its position in the source, the state of operators, when it is seen, what commits it.
type Segment struct {
	Name      string               `json:"name"`
	Keeper    string               `json:"kept_by"`
	Guarantee connectors.Guarantee `json:"guarantee"`
	How       []string             `json:"how"`
}

// Question is one of the three by which a promise of exactly once is told from a guarantee.
type Question struct {
	Question string `json:"question"`
	Yes      bool   `json:"yes"`
	Answer   string `json:"answer"`
}

// Latency bounds how late a row is seen.
type Latency struct {
	Text     string `json:"text"`
	Interval int64  `json:"checkpoint_interval_ms,omitempty"`
	Timeout  int64  `json:"checkpoint_timeout_ms,omitempty"`
	MinPause int64  `json:"min_pause_ms,omitempty"`
}

// The names of the segments, in the order of a row's way.
const (
	segmentPosition = "source position"
	segmentState    = "operator state"
	segmentVisible  = "write visibility"
	segmentCommit   = "commit"
)

// Guarantees works the report out. It contacts nothing.
func (plan *Plan) Guarantees() *Guarantees {
	g := &Guarantees{Job: plan.Name}
	for i := range plan.Sinks {
		g.Sinks = append(g.Sinks, plan.sinkGuarantee(plan.Sinks[i], plan.roots[i]))
	}
	for _, d := range plan.OnRecord {
		g.OnRecord = append(g.OnRecord, d.String())
	}
	return g
}

func (plan *Plan) sinkGuarantee(s SinkPlan, root *phys) SinkGuarantee {
	g := SinkGuarantee{Table: s.Table, Delivery: s.Mode.Delivery.String()}
	if s.Collect {
		g.Table = "the result of SELECT"
	}
	g.Segments = []Segment{plan.positionSegment(root), plan.stateSegment(root), visibleSegment(s, root), plan.commitSegment(s, root)}
	for _, seg := range g.Segments {
		if seg.Guarantee > g.Guarantee {
			g.Guarantee, g.Weakest = seg.Guarantee, seg.Name
		}
	}
	g.Questions = plan.questions(s)
	g.Latency = plan.latencyBound(s, root)
	if s.Mode.Commit.Unit != "" {
		g.Unit, g.OpenTransactions = s.Mode.Commit.Unit, s.Mode.Commit.Open(s.Parallel, plan.jobInfo().MaxConcurrentCheckpoints)
	}
	g.Retention = plan.remembers(root)
	g.Replay = plan.replayed(s, root)
	g.Outside = plan.outsideOf(s, root)
	return g
}

func (plan *Plan) checkpointsOff() bool { return !plan.Bounded && plan.conf.Duration(keyInterval) == 0 }

// positionSegment is about the tables read.
func (plan *Plan) positionSegment(root *phys) Segment {
	seg := Segment{Name: segmentPosition, Keeper: "the checkpoint"}
	for _, p := range treeOf(root) {
		switch n := p.op.(type) {
		case *Scan:
			name, r := n.Info.Table.Name, connectors.Replay{Position: "the position"}
			if n.Info.Connector != nil && n.Info.Connector.Replay != nil {
				if got, err := n.Info.Connector.Replay(n.Info.Table); err == nil {
					r = got
				}
			}
			if slices.Contains(seg.How, name+": "+r.Position) {
				continue // read twice, with other columns or options
			}
			seg.How = append(seg.How, name+": "+r.Position)
			for _, w := range r.Weakness {
				seg.How = append(seg.How, name+": but "+w)
			}
			seg.Guarantee = max(seg.Guarantee, r.Worth)
		case *Values:
			seg.How = append(seg.How, "VALUES: the number of the row")
		}
	}
	if plan.checkpointsOff() {
		seg.Keeper, seg.Guarantee = "nobody", max(seg.Guarantee, connectors.CanRepeat)
		seg.How = append(seg.How, "but checkpoints are off ('"+keyInterval+"' = 0): a crash starts from the beginning")
	}
	return seg
}

// stateSegment is about what operators hold.
func (plan *Plan) stateSegment(root *phys) Segment {
	seg := Segment{Name: segmentState, Keeper: "the checkpoint"}
	var ops []string
	for _, p := range treeOf(root) {
		if stateful(p) {
			ops = append(ops, shortLabel(p))
		}
	}
	switch {
	case ops == nil:
		seg.How = []string{"no operator has state"}
	case plan.checkpointsOff():
		seg.Keeper = "nobody"
		seg.How = []string{strings.Join(ops, ", ") + ": but checkpoints are off, a crash starts without it"}
	default:
		seg.How = []string{strings.Join(ops, ", ") + ": cut at the same barrier as the positions, and goes back with them"}
	}
	if plan.atLeastOnce() {
		seg.Guarantee = connectors.CanRepeat
		seg.How = append(seg.How, "but barriers are not aligned ('"+keyMode+"' = AT_LEAST_ONCE): rows behind a barrier can be in the checkpoint, and are read again")
	}
	if ttl := plan.conf.StateTTL().Milliseconds(); ttl > 0 && ops != nil {
		seg.How = append(seg.How, "state that idles for "+millis(ttl)+" is dropped ('"+keyStateTTL+"')")
	}
	return seg
}

// visibleSegment is about when readers of the table see a row.
func visibleSegment(s SinkPlan, root *phys) Segment {
	seg := Segment{Name: segmentVisible, Keeper: ownerOf(s, root)}
	switch s.Mode.Delivery {
	case connectors.TwoPhaseCommit:
		seg.How = []string{"hidden until the checkpoint that lists them is durable: " + orElse(s.Mode.Commit.Held, "by the connector")}
	case connectors.IdempotentUpsert:
		seg.Guarantee = connectors.FinalState
		seg.How = []string{"at once, before the checkpoint; after a failure a key can show an older value until the job has caught up"}
	case connectors.AtLeastOnce:
		seg.Guarantee, seg.Keeper = connectors.CanRepeat, "nobody"
		seg.How = []string{"at once, before the checkpoint; after a failure the rows since the last checkpoint are seen again"}
	default:
		seg.Guarantee, seg.Keeper = connectors.CanLose, "nobody"
		seg.How = []string{"at once, or never"}
	}
	return seg
}

// ownerOf names who holds what was written.
func ownerOf(s SinkPlan, root *phys) string {
	if s.Collect {
		return "the program or terminal that asked"
	}
	return "the system of connector '" + root.op.(*Sink).Target.Connector.Name + "'"
}

// commitSegment is about what makes rows final.
func (plan *Plan) commitSegment(s SinkPlan, root *phys) Segment {
	seg := Segment{Name: segmentCommit, Keeper: "the coordinator, after the manifest of the checkpoint is durable"}
	c := s.Mode.Commit
	switch s.Mode.Delivery {
	case connectors.TwoPhaseCommit:
		seg.How = []string{"pre-committed at the barrier; committed by whoever holds the checkpoint, as often as needed, with the same result"}
		seg.Guarantee = max(seg.Guarantee, c.Worth)
		if c.Ends != "" {
			seg.How = append(seg.How, "what can end it otherwise: "+c.Ends)
		}
		if plan.degrades() {
			seg.Guarantee = max(seg.Guarantee, connectors.CanRepeat)
			seg.How = append(seg.How, "but a restore that cannot be exact, because a transaction was ended otherwise or a file of the checkpoint is damaged, goes back to where nothing is lost and writes visible rows again ('"+keyOnDegraded+"' = at-least-once)")
		}
	case connectors.IdempotentUpsert:
		seg.Keeper, seg.Guarantee = "the table's primary key", connectors.FinalState
		seg.How = []string{fmt.Sprintf("flushed at the barrier; a replay writes the keys (%s) again, with the rows of the restored state", strings.Join(s.Mode.Key, ", "))}
		if call := volatileKey(plan.conf, root); call != nil {
			seg.Guarantee = connectors.CanRepeat
			seg.How = append(seg.How, "but the key is made of "+call.String()+": a replay writes other keys, and the earlier rows stay")
		}
		if takesBack(root) {
			seg.Guarantee = connectors.CanRepeat
			seg.How = append(seg.How, "but the query takes rows back: one that was written after the checkpoint stays when a replay, in which rows meet in another order, does not come by it")
		}
		if valueComesBack(root) {
			seg.Guarantee = connectors.CanRepeat
			seg.How = append(seg.How, "but the value of a key can come back to the one of the checkpoint: a replay that passes the others by within a batch writes nothing, and one that was written stays")
		}
		for i := range root.fields {
			if readBack(root, i, root.op.(*Sink).Target, false) != nil {
				seg.Guarantee = connectors.CanRepeat
				seg.How = append(seg.How, "but column "+root.fields[i].Name+" adds to the row that is there: a replay adds again")
			}
		}
	case connectors.AtLeastOnce:
		seg.Keeper, seg.Guarantee = "nobody", connectors.CanRepeat
		seg.How = []string{"flushed at the barrier; a replay writes the rows again"}
	default:
		seg.Keeper, seg.Guarantee = "nobody", connectors.CanLose
		seg.How = []string{"never waited for"}
	}
	if s.Mode.Weakness != "" && s.Mode.Delivery == connectors.TwoPhaseCommit {
		seg.How = append(seg.How, s.Mode.Weakness)
	}
	return seg
}

// takesBack reports that a key of an upserted table can be written and, in a replay, never be met again: an operator deletes keys
// by what else it holds or sees. Rows of two inputs meet in another order in a replay, and those of one in other batches, where an
// insertion and its deletion leave nothing to write.
func takesBack(root *phys) bool {
	return retracts(root.in[0]) && slices.ContainsFunc(treeOf(root.in[0]), func(p *phys) bool {
		if _, source := p.op.(*Scan); source || !retracts(p) || firstOfAll(p) {
			return false
		}
		// Other operators without state pass deletions on that came to them.
		return len(p.keyedBy) > 0 || !slices.ContainsFunc(p.in, retracts)
	})
}

// valueComesBack reports that a key of an upserted table can have a value after the checkpoint, and then the one of the checkpoint
// again. Changes of a key are merged within a batch: a replay in other batches can find that nothing has changed, and so not write
// over a value that was written before the failure. COUNT, MAX, MIN and FIRST_VALUE over rows that only come never go back; of
// rows that only come, each is written again.
func valueComesBack(root *phys) bool {
	return slices.ContainsFunc(treeOf(root.in[0]), func(p *phys) bool {
		if !stateful(p) || p.trait.Kinds == Inserts {
			return false
		}
		switch n := p.op.(type) {
		case *Aggregate:
			return p.in[0].trait.Kinds != Inserts || slices.ContainsFunc(n.Aggs, goesBack)
		case *Rank:
			return !firstOfAll(p) || len(n.Order) > 0 && n.In.Fields()[n.Order[0].Col].Time == Proctime // the order has the row's own time else
		}
		return true
	})
}

// goesBack reports an aggregate over rows that only come whose value can be one that it was before.
func goesBack(a expr.Agg) bool {
	switch a.Kind {
	case expr.AggCount, expr.AggCountStar, expr.AggMax, expr.AggMin, expr.AggFirst:
		return false
	}
	return true
}

// retracts reports that p takes rows back that are not followed by another of their key: by deletions, or by -U, which it is
// asked for where a condition can leave the row after it out.
func retracts(p *phys) bool { return p.trait.Delete != NoDelete || p.trait.Update == BeforeAndAfter }

// firstOfAll reports a Top-1 of rows that only come: which row it is changes, but a key that has one keeps one.
func firstOfAll(p *phys) bool {
	n, ok := p.op.(*Rank)
	return ok && n.From <= 1 && n.To == 1 && n.ToColumn < 0 && p.mode(0) == types.AppendOnly
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// questions are the three of the exactly-once test, with their answers.
func (plan *Plan) questions(s SinkPlan) []Question {
	q := []Question{{Question: "is the commit after the checkpoint?"}, {Question: "is the transaction id in the checkpoint?"}, {Question: "is what was committed recognised on restore?"}}
	c := s.Mode.Commit
	switch s.Mode.Delivery {
	case connectors.TwoPhaseCommit:
		q[0].Yes, q[0].Answer = true, "the manifest is durable first, and lists what is to be committed; only then the coordinator commits"
		q[1].Yes, q[1].Answer = c.ID != "", orElse(c.ID, "the connector does not say what identifies its transactions")
		q[2].Yes, q[2].Answer = c.Known != "", orElse(c.Known, "the connector does not say how it learns of an outcome")
	case connectors.IdempotentUpsert:
		q[0].Answer = "rows take effect as they are written, before the checkpoint"
		q[1].Answer = "there is none: a row is known by its key"
		q[2].Answer = "it is not asked: the rows since the checkpoint are written again, by the same keys"
	default:
		q[0].Answer = "rows take effect as they are written, before the checkpoint"
		q[1].Answer = "there is no transaction"
		q[2].Answer = "the rows since the checkpoint are written again beside those that are there"
		if s.Mode.Delivery == connectors.NoGuarantee {
			q[2].Answer = "nobody knows what arrived"
		}
	}
	return q
}

// latencyBound is how late a row is seen: with its checkpoint, or as it is written.
func (plan *Plan) latencyBound(s SinkPlan, root *phys) Latency {
	end := endText(root)
	if s.Mode.Delivery != connectors.TwoPhaseCommit {
		return Latency{Text: end + "as fast as rows are written"}
	}
	j := plan.jobInfo()
	if j.CheckpointInterval == 0 {
		return Latency{Text: end + "checkpoints are off ('" + keyInterval + "' = 0): when the job stops or ends", Timeout: j.CheckpointTimeout}
	}
	l := Latency{Interval: j.CheckpointInterval, Timeout: j.CheckpointTimeout, MinPause: j.MinPause}
	l.Text = fmt.Sprintf("%sat most %s (checkpoint interval) + the checkpoint (given up after %s; its rows then come with the next) + the commit",
		end, millis(j.CheckpointInterval), millis(j.CheckpointTimeout))
	if j.MinPause > 0 {
		l.Text += fmt.Sprintf("; at least %s lie between two checkpoints", millis(j.MinPause))
	}
	return l
}

// remembers is how long deduplications recognise a row that comes twice.
func (plan *Plan) remembers(root *phys) []string {
	var out []string
	for _, p := range treeOf(root) {
		r, ok := p.op.(*Rank)
		if !ok {
			continue
		}
		if _, _, dedup := r.deduplicates(); !dedup {
			continue
		}
		how := "for ever"
		if ttl := plan.conf.StateTTL().Milliseconds(); ttl > 0 {
			how = millis(ttl) + ": a row that comes again later passes as new"
		}
		out = append(out, fmt.Sprintf("%s keeps keys %s", p.op.label(), how))
	}
	return out
}

// outsideOf is what no guarantee of the job covers.
func (plan *Plan) outsideOf(s SinkPlan, root *phys) []string {
	out := outside(root)
	for _, r := range root.op.(*Sink).Target.Risks {
		out = append(out, r.line())
	}
	switch {
	case s.Collect:
	case s.Mode.Behind != "":
		out = append(out, s.Mode.Behind)
	default:
		out = append(out, "whoever reads "+s.Table+", its triggers, and what they do with the rows")
	}
	if s.Mode.Delivery == connectors.TwoPhaseCommit && len(plan.Sinks) > 1 {
		out = append(out, "the moment of the commit: the tables of the job are cut at the same barrier, and seen one after another")
	}
	if calls := userCalls(root); calls != nil {
		out = append(out, "what "+strings.Join(calls, ", ")+" may do beside giving a result: Go functions are called again for the rows since the last checkpoint")
	}
	return out
}

// Text is the report for people.
func (g *Guarantees) Text() string {
	var sb strings.Builder
	sb.WriteString("== Guarantees ==\n")
	for i := range g.Sinks {
		if i > 0 {
			sb.WriteString("\n")
		}
		g.Sinks[i].text(&sb)
	}
	for _, line := range g.OnRecord {
		sb.WriteString("on record: " + line + "\n")
	}
	return sb.String()
}

func (s *SinkGuarantee) text(sb *strings.Builder) {
	line := func(label, format string, args ...any) {
		if label != "" {
			label += ":"
		}
		sb.WriteString(strings.TrimRight(fmt.Sprintf("  %-18s %s", label, fmt.Sprintf(format, args...)), " ") + "\n")
	}
	fmt.Fprintf(sb, "%s: %s (%s)\n", s.Table, s.Guarantee, s.Delivery)
	line("weakest link", "%s", orElse(s.Weakest, "none"))
	for _, seg := range s.Segments {
		line(seg.Name, "%s; kept by %s", seg.Guarantee, seg.Keeper)
		for _, h := range seg.How {
			line("", "- %s", h)
		}
	}
	line("latency", "%s", s.Latency.Text)
	if s.OpenTransactions > 0 {
		line("transactions", "at most %d %s open at a time", s.OpenTransactions, s.Unit)
	}
	for _, r := range s.Retention {
		line("remembers", "%s", r)
	}
	line("questions", "")
	for _, q := range s.Questions {
		line("", "- %s %s: %s", q.Question, map[bool]string{true: "yes", false: "no"}[q.Yes], q.Answer)
	}
	for _, r := range s.Replay {
		line("computed again", "%s", r.line())
	}
	for _, o := range s.Outside {
		line("outside", "%s", o)
	}
}
