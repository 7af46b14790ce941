package nexmark

import (
	"context"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The values of option 'event'.
const (
	allEvents = "all"
	persons   = "person"
	auctions  = "auction"
	bids      = "bid"
)

var options = []connectors.Option{
	{Key: "first-event.rate", Type: connectors.IntOption, Default: "10000", Flink: true, Doc: "events per second of event time"},
	{Key: "next-event.rate", Type: connectors.IntOption, Default: "10000", Flink: true, Doc: "must equal 'first-event.rate': the rate does not change"},
	{Key: "rate.shape", Type: connectors.EnumOption, Default: "SQUARE", Values: []string{"SQUARE", "SINE"}, Flink: true,
		Doc: "how the rate goes from the first to the next, which are equal: no effect"},
	{Key: "rate.period", Type: connectors.DurationOption, Default: "600 s", Flink: true, Doc: "how long that takes: no effect"},
	{Key: "rate.limited", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "make events no faster than their times pass"},
	{Key: "max-emit-speed", Type: connectors.BoolOption, Default: "true", Flink: true, Doc: "'false' is 'rate.limited' = 'true'"},
	{Key: "events.num", Type: connectors.IntOption, Default: "0", Flink: true, Doc: "number of events of all kinds; 0 = no end"},
	{Key: "person.proportion", Type: connectors.IntOption, Default: "1", Flink: true, Doc: "people in each group of events"},
	{Key: "auction.proportion", Type: connectors.IntOption, Default: "3", Flink: true, Doc: "auctions in each group of events"},
	{Key: "bid.proportion", Type: connectors.IntOption, Default: "46", Flink: true, Doc: "bids in each group of events"},
	{Key: "person.avg-size", Type: connectors.MemoryOption, Default: "200b", Flink: true, Doc: "average size of a person"},
	{Key: "auction.avg-size", Type: connectors.MemoryOption, Default: "500b", Flink: true, Doc: "average size of an auction"},
	{Key: "bid.avg-size", Type: connectors.MemoryOption, Default: "100b", Flink: true, Doc: "average size of a bid"},
	{Key: "bid.hot-ratio.auctions", Type: connectors.IntOption, Default: "2", Flink: true, Doc: "one bid of so many is not for a hot auction"},
	{Key: "bid.hot-ratio.bidders", Type: connectors.IntOption, Default: "4", Flink: true, Doc: "one bid of so many is not by a hot bidder"},
	{Key: "auction.hot-ratio.sellers", Type: connectors.IntOption, Default: "4", Flink: true, Doc: "one auction of so many is not by a hot seller"},
	{Key: "keep-alive", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "must be 'false': the table ends after its events"},
	{Key: "stop-at", Type: connectors.IntOption, Default: "-1", Flink: true, Doc: "must be -1: 'events.num' says where the table ends"},
	{Key: "event", Type: connectors.EnumOption, Default: allEvents, Values: []string{allEvents, persons, auctions, bids},
		Doc: "which events are rows, with their fields as columns; 'all' has the columns event_type, person, auction and bid"},
	{Key: "base-time", Type: connectors.StringOption, Default: "2015-07-15 00:00:00", Doc: "time of the first event"},
	{Key: "seed", Type: connectors.IntOption, Default: "0", Doc: "start of the random numbers"},
	{Key: "scan.parallelism", Type: connectors.IntOption, Flink: true, Doc: "number of splits, by default the source's parallelism"},
}

// Connector is 'nexmark'.
func Connector() connectors.Connector {
	return connectors.Connector{
		Name: "nexmark", Doc: "the events of the Nexmark benchmark: people, auctions and bids", Options: options,
		Replay: func(*catalog.Table) (connectors.Replay, error) {
			return connectors.Replay{Position: "the number of the event; an event is made of its number, so it is the same when it is made again"}, nil
		},
		Check: func(t *catalog.Table, _ connectors.Use) error {
			_, err := parse(t)
			return err
		},
		Bounded: func(t *catalog.Table) (bool, error) {
			p, err := parse(t)
			return err == nil && p.events > 0, err
		},
		ReadsFields: func(*catalog.Table, int) bool { return true },
		PushFilter:  pushFilter,
		NewSource:   func(_ context.Context, spec connectors.SourceSpec) (connectors.Source, error) { return newSource(spec) },
	}
}

// plan is a table's options and columns, resolved.
type plan struct {
	config
	columns []column // by position in the table
	event   string
	events  int64 // 0 = no end
	splits  int64 // 0 = the source's parallelism
	paced   bool
}

// config is what the values of events depend on.
type config struct {
	seed                             uint64
	person, auction, bid, total      int64 // events of a kind in a group, and all
	personSize, auctionSize, bidSize int64 // bytes, on average
	hotAuctions, hotBidders, sellers int64
	baseMs                           int64
	usPer                            float64 // between two events, in µs of event time
	rate                             int64
}

func parse(t *catalog.Table) (*plan, error) {
	v, err := connectors.Parse(t, options, nil)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"first-event.rate", "bid.hot-ratio.auctions", "bid.hot-ratio.bidders", "auction.hot-ratio.sellers",
		"person.proportion", "auction.proportion", "bid.proportion", "scan.parallelism"} {
		// Every group has all kinds: ids of the others are derived from them.
		if n := v.Int(key); n < 1 && (v.Has(key) || key != "scan.parallelism") || n > 1<<30 {
			return nil, v.Errorf(key, "%d is not between 1 and %d", n, 1<<30)
		}
	}
	for _, key := range []string{"person.avg-size", "auction.avg-size", "bid.avg-size"} {
		if n := v.Memory(key); n > maxSize {
			return nil, v.Errorf(key, "%d bytes are more than %d", n, maxSize)
		}
	}
	if err := fixed(v); err != nil {
		return nil, err
	}
	p := &plan{event: v.Enum("event"), events: v.Int("events.num"), splits: v.Int("scan.parallelism"),
		paced: v.Bool("rate.limited") || !v.Bool("max-emit-speed")}
	p.config = config{
		seed: mix(uint64(v.Int("seed")) + 1), person: v.Int("person.proportion"), auction: v.Int("auction.proportion"), bid: v.Int("bid.proportion"),
		personSize: v.Memory("person.avg-size"), auctionSize: v.Memory("auction.avg-size"), bidSize: v.Memory("bid.avg-size"),
		hotAuctions: v.Int("bid.hot-ratio.auctions"), hotBidders: v.Int("bid.hot-ratio.bidders"), sellers: v.Int("auction.hot-ratio.sellers"),
		rate: v.Int("first-event.rate"),
	}
	p.total = p.person + p.auction + p.bid
	p.usPer = 1e6 / float64(p.rate)
	sec, nanos, ok := types.ParseTimestamp(v.String("base-time"))
	if !ok {
		return nil, v.Errorf("base-time", "'%s' is not a timestamp such as 2015-07-15 00:00:00", v.String("base-time"))
	}
	p.baseMs = sec*1000 + nanos/1e6
	return p, p.resolve(t)
}

// fixed refuses values of Flink's options that would ask for what is not here.
func fixed(v *connectors.Values) error {
	if v.Int("events.num") < 0 {
		return v.Errorf("events.num", "%d is negative", v.Int("events.num"))
	}
	if v.Has("next-event.rate") || v.Has("first-event.rate") {
		if a, b := v.Int("first-event.rate"), v.Int("next-event.rate"); a != b {
			return v.Errorf("next-event.rate", "%d is not the %d of 'first-event.rate'", b, a).
				WithHint("give both the same value; the rate of events does not change while they are made")
		}
	}
	if v.Bool("keep-alive") {
		return v.Errorf("keep-alive", "a table that goes on after its last event is not supported").
			WithHint("leave out 'events.num' for a table that does not end")
	}
	if v.Int("stop-at") != -1 {
		return v.Errorf("stop-at", "%d is not -1", v.Int("stop-at")).WithHint("'events.num' says after how many events the table ends")
	}
	return nil
}

// column is what a column of the table holds: a field of the events, or a ROW of fields of one kind of event.
type column struct {
	field field
	row   []field // of a ROW
	kind  kind    // of a ROW, or of a field of one: noKind for a field of all events
	typ   types.Type
}

// part is the field of a ROW that path leads to.
func (c column) part(path []int) column {
	if path == nil {
		return c
	}
	i := path[0]
	return column{field: c.row[i], kind: c.kind, typ: c.typ.Fields[i].Type}
}

// resolve finds the field of every column by its name.
func (p *plan) resolve(t *catalog.Table) error {
	for _, c := range t.Columns {
		switch {
		case c.Kind == catalog.Metadata:
			return diag.New(diag.Semantic, t.Options.Pos("connector"), "table %s: connector 'nexmark' has no metadata column '%s'", t.Name, c.Key)
		case c.Kind != catalog.Physical:
			p.columns = append(p.columns, column{kind: noKind})
			continue
		}
		col, err := p.column(t, c.Name, c.Type)
		if err != nil {
			return err
		}
		p.columns = append(p.columns, col)
	}
	return nil
}

func (p *plan) column(t *catalog.Table, name string, typ types.Type) (column, error) {
	if p.event != allEvents {
		k := kindOf(p.event)
		f, err := k.find(t, name, typ)
		return column{field: f, kind: noKind, typ: typ}, err
	}
	if norm(name) == "eventtype" {
		return column{field: eventType, kind: noKind, typ: typ}, fits(t, name, typ, types.IntType)
	}
	k := kindOf(norm(name))
	if k == noKind || typ.Kind != types.Row {
		return column{}, diag.New(diag.Semantic, t.Options.Pos("connector"),
			"table %s: column %s %s is not one of the connector 'nexmark'", t.Name, name, typ).
			WithHint("the columns are event_type INT, person ROW<…>, auction ROW<…> and bid ROW<…>; with 'event' = 'bid' (person, auction) the fields are columns of their own")
	}
	col := column{kind: k, typ: typ}
	for _, rf := range typ.Fields {
		f, err := k.find(t, rf.Name, rf.Type)
		if err != nil {
			return col, err
		}
		col.row = append(col.row, f)
	}
	return col, nil
}
