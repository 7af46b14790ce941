package kafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// rangeBound is the bounded mode of a source with SourceSpec.Range.
const rangeBound = "range"

// inRange is where a partition starts and ends by SourceSpec.Range.
func (o *offsets) inRange(p partition) (next, stop int64, err error) {
	r, ok := o.s.spec.Range[p.split()]
	if !ok {
		next, err = o.begin(p)
		return next, next, err
	}
	to, err := decodePosition(r.To)
	if err != nil {
		return 0, 0, err
	}
	if r.From == nil {
		next, err = o.start(p, true)
		return next, to.next, err
	}
	from, err := decodePosition(r.From)
	return from.next, to.next, err
}

// Extent is what a partition holds for a reader of committed records.
type Extent struct {
	Split      checkpoint.Split
	First, End int64  // offset of the first record, and the one behind the last visible record
	From, To   []byte // the same as positions
}

// Extents are those of the partitions of a table's topics.
func Extents(ctx context.Context, t *catalog.Table, embedded string, log *slog.Logger) ([]Extent, error) {
	s, err := openExtents(t, embedded, log)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	topics, err := s.topics(ctx)
	if err != nil {
		return nil, err
	}
	var parts []partition
	for name, d := range topics {
		for _, p := range d.Partitions {
			parts = append(parts, partition{name, p.Partition})
		}
	}
	o, err := s.newOffsets(ctx, parts)
	if err != nil {
		return nil, err
	}
	var out []Extent
	for _, p := range parts {
		e := Extent{Split: p.split()}
		if e.First, err = o.begin(p); err != nil {
			return nil, err
		}
		if e.End, err = o.end(p); err != nil {
			return nil, err
		}
		pos := position{topicID: s.ids[p.topic], epoch: -1, stop: noStop}
		pos.next = e.First
		e.From = pos.encode()
		pos.next = e.End
		e.To = pos.encode()
		out = append(out, e)
	}
	return out, nil
}

func openExtents(t *catalog.Table, embedded string, log *slog.Logger) (*source, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	x, err := parseTable(t, t.Connector() == "upsert-kafka")
	if err != nil {
		return nil, err
	}
	c, err := newClient(t, embedded, log)
	if err != nil {
		return nil, err
	}
	return &source{spec: connectors.SourceSpec{Table: t, Embedded: embedded}, x: x, c: c, log: log, ids: map[string][16]byte{}}, nil
}

// Offset is that of a position.
func Offset(next []byte) (int64, error) {
	p, err := decodePosition(next)
	return p.next, err
}

// StartsAgain tells why reading the table again from its configured start need not give what it gave before; "" = it does,
// as long as nothing was deleted.
func StartsAgain(t *catalog.Table) (string, error) {
	x, err := parseTable(t, t.Connector() == "upsert-kafka")
	if err != nil {
		return "", err
	}
	c, err := newClient(t, "embedded:0", nil)
	if err != nil {
		return "", err
	}
	m, err := x.startMode(c)
	if err != nil || m.mode == "earliest-offset" || m.mode == "specific-offsets" && c.group == "" || m.mode == "timestamp" {
		return "", err
	}
	return "'scan.startup.mode' = '" + m.mode + "' means another place by now", nil
}

// Untransacted counts the records in the ranges that a transaction did not write: no exactly-once sink did.
func Untransacted(ctx context.Context, t *catalog.Table, embedded string, ranges []Extent) (n int64, err error) {
	s, err := openExtents(t, embedded, nil)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	start := map[string]map[int32]kgo.Offset{}
	left := map[partition]int64{}
	for _, r := range ranges {
		p, err := parseSplit(r.Split)
		if err != nil {
			return 0, err
		}
		if r.First >= r.End {
			continue
		}
		if start[p.topic] == nil {
			start[p.topic] = map[int32]kgo.Offset{}
		}
		start[p.topic][p.num], left[p] = kgo.NewOffset().At(r.First), r.End
	}
	// Control records end the log where a transaction wrote last.
	cl, err := kgo.NewClient(s.c.opts(s.c.consumer, []kgo.Opt{kgo.ConsumePartitions(start), kgo.KeepControlRecords(), kgo.FetchIsolationLevel(kgo.ReadUncommitted())})...)
	if err != nil {
		return 0, diag.New(diag.Config, diag.Pos{}, "kafka client cannot be made").Wrap(err)
	}
	defer cl.Close()
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return 0, diag.New(diag.External, diag.Pos{}, "table %s: reading from kafka failed", t.Name).Wrap(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			p := partition{r.Topic, r.Partition}
			end, open := left[p]
			if open && r.Offset < end && !r.Attrs.IsTransactional() && !r.Attrs.IsControl() {
				n++
			}
			if open && r.Offset+1 >= end {
				delete(left, p)
			}
		})
	}
	return n, nil
}
