package memory

import (
	"context"
	"sync"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Row is a row of a table: its kind and one value per physical column in declared order.
type Row struct {
	Kind   types.RowKind
	Values []types.Datum
}

// Insert is a +I row.
func Insert(values ...types.Datum) Row { return Row{Kind: types.Insert, Values: values} }

// Bus holds feeds, queues and tables to look up by name. Safe for concurrent use, as are they.
type Bus struct {
	mu     sync.Mutex
	feeds  map[string]*Feed
	queues map[string]*Queue
	rows   map[string]*Rows
}

// NewBus makes an empty bus.
func NewBus() *Bus {
	return &Bus{feeds: map[string]*Feed{}, queues: map[string]*Queue{}, rows: map[string]*Rows{}}
}

// Feed is the feed called name. It is made, with one split, when there is none.
func (b *Bus) Feed(name string) *Feed {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.feeds[name]
	if f == nil {
		f = newFeed(name)
		b.feeds[name] = f
	}
	return f
}

// Queue is the queue called name. It is made when there is none.
func (b *Bus) Queue(name string) *Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		q = newQueue(name)
		b.queues[name] = q
	}
	return q
}

// The values of the option 'changelog' and 'delivery'.
const (
	exactlyOnce = "exactly-once"
	atLeastOnce = "at-least-once"
)

var options = append([]connectors.Option{
	{Key: "name", Type: connectors.StringOption, Doc: "name of the feed, queue or rows in the program; the table's name by default"},
	{Key: "changelog", Type: connectors.EnumOption, Default: "append", Values: []string{"append", "upsert", "retract"},
		Doc: "the kinds of rows the program feeds, or takes"},
	{Key: "delivery", Type: connectors.EnumOption, Default: exactlyOnce, Values: []string{exactlyOnce, atLeastOnce},
		Doc: "exactly-once shows rows when their checkpoint is committed, at-least-once shows them at once"},
	{Key: "bounded", Type: connectors.BoolOption, Default: "false", Doc: "the program closes the feed some time"},
}, connectors.LookupOptions...)

// Connector is the connector 'memory' of this bus.
func (b *Bus) Connector() *connectors.Connector {
	return &connectors.Connector{
		Name: "memory", Doc: "feeds tables from, and reads tables into, the Go program around the engine",
		Options: options,
		SourceMode: func(t *catalog.Table) (types.ChangelogMode, error) {
			o, err := parse(t)
			return o.mode, err
		},
		Bounded: func(t *catalog.Table) (bool, error) {
			o, err := parse(t)
			return o.bounded, err
		},
		ReadsFields: func(*catalog.Table, int) bool { return true },
		Check: func(t *catalog.Table, use connectors.Use) error {
			o, err := parse(t)
			if err == nil && o.mode == types.Upsert && len(t.PrimaryKey) == 0 {
				err = diag.New(diag.Config, t.Options.Pos("changelog"), "table %q has 'changelog' = 'upsert' and no primary key", t.Name).
					WithHint("declare PRIMARY KEY (...) NOT ENFORCED, or use 'changelog' = 'retract'")
			}
			return err
		},
		NewSource: func(_ context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
			o, err := parse(spec.Table)
			if err != nil {
				return nil, err
			}
			return newSource(b.Feed(o.name), spec), nil
		},
		Replay: func(*catalog.Table) (connectors.Replay, error) {
			return connectors.Replay{Position: "the number of rows taken from the program", Worth: connectors.CanLose,
				Weakness: []string{"rows that the program wrote are kept in the memory of this process: a restart of the process loses those not in a checkpoint, unless the program writes them again"}}, nil
		},
		SinkModes: sinkModes,
		NewSink: func(_ context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
			o, err := parse(spec.Table)
			if err != nil {
				return nil, err
			}
			return &sink{q: b.Queue(o.name), spec: spec}, nil
		},
		NewLookup: func(_ context.Context, spec connectors.LookupSpec) (connectors.Lookup, error) {
			o, err := parse(spec.Table)
			if err != nil {
				return nil, err
			}
			return newLookup(b.Rows(o.name), o.retries, spec), nil
		},
		LookupCache: func(t *catalog.Table) (connectors.LookupCache, error) {
			o, err := parse(t)
			return o.cache, err
		},
	}
}

// parsed are a table's options.
type parsed struct {
	name, delivery string
	mode           types.ChangelogMode
	bounded        bool
	cache          connectors.LookupCache
	retries        int
}

func parse(t *catalog.Table) (parsed, error) {
	v, err := connectors.Parse(t, options, nil)
	if err != nil {
		return parsed{}, err
	}
	p := parsed{name: v.String("name"), delivery: v.Enum("delivery"), bounded: v.Bool("bounded"), retries: int(v.Int("lookup.max-retries"))}
	if p.name == "" {
		p.name = t.Name
	}
	if p.cache, err = connectors.ParseLookupCache(v); err != nil {
		return parsed{}, err
	}
	switch v.Enum("changelog") {
	case "upsert":
		p.mode = types.Upsert
	case "retract":
		p.mode = types.Retract
	}
	return p, nil
}

func sinkModes(t *catalog.Table) ([]connectors.SinkMode, error) {
	o, err := parse(t)
	if err != nil {
		return nil, err
	}
	m := connectors.SinkMode{Changelog: o.mode, Delivery: connectors.TwoPhaseCommit,
		Reason: "rows are shown to the program when their checkpoint is committed",
		Commit: connectors.Commitment{
			Held:       "in the queue, hidden from the program until the commit",
			ID:         "the id of the transaction in the queue: lineage, incarnation, subtask and number",
			Known:      "the queue remembers the outcome of every transaction",
			Ends:       "the queue lives in this process: rows that the program has not taken are gone when the process ends",
			PerSubtask: true,
		}}
	if o.mode == types.Upsert {
		m.Key = t.PrimaryKey
	}
	if o.delivery == atLeastOnce {
		m.Delivery = connectors.AtLeastOnce
		m.Reason = "'delivery' = 'at-least-once': rows are shown to the program at once"
		m.Weakness = "after a restart rows can be shown again"
	}
	return []connectors.SinkMode{m}, nil
}
