package planner

import (
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// stateHints are the STATE_TTL hints of a SELECT block, by the name of a table in its FROM clause.
type stateHints map[string]*stateHint

type stateHint struct {
	ttl  int64 // ms
	name sql.Name
	used bool
}

// batchHints choose among the ways a batch job can join; a streaming job has one.
var batchHints = map[string]bool{"BROADCAST": true, "SHUFFLE_HASH": true, "SHUFFLE_MERGE": true, "NEST_LOOP": true, "MULTI_JOIN": true}

// queryHints reads the hints behind SELECT.
func (b *binder) queryHints(q *sql.Select) (stateHints, error) {
	var out stateHints
	b.lookups = nil
	for _, h := range q.Hints {
		switch {
		case h.Name == "LOOKUP":
			if b.lookups == nil {
				b.lookups = lookupHints{}
			}
			if err := b.lookups.add(h); err != nil {
				return nil, err
			}
		case batchHints[h.Name]:
			b.notices = append(b.notices, "hint "+h.Name+" has no effect: there is one way to run a streaming join")
		case h.Name == "STATE_TTL":
			if out == nil {
				out = stateHints{}
			}
			if err := out.add(h); err != nil {
				return nil, err
			}
		default:
			return nil, diag.New(diag.Unsupported, h.Pos, "hint %s is not supported here", h.Name).
				WithHint("STATE_TTL('table'='1d') and LOOKUP('table'='t', ...) are; OPTIONS hints stand behind a table name")
		}
	}
	return out, nil
}

func (s stateHints) add(h sql.Hint) error {
	if len(h.Options) == 0 {
		return diag.New(diag.Semantic, h.Pos, "hint STATE_TTL names no table").WithHint("write /*+ STATE_TTL('table'='1d') */")
	}
	for _, o := range h.Options {
		d, err := connectors.ParseDuration(o.Value)
		if err != nil || d < 0 {
			return diag.New(diag.Semantic, o.ValuePos, "hint STATE_TTL: '%s' is not a duration", o.Value).WithHint("such as '1 d', '12 h' or '30 min'")
		}
		if s[o.Key] != nil {
			return diag.New(diag.Semantic, o.KeyPos, "hint STATE_TTL names %s twice", o.Key)
		}
		s[o.Key] = &stateHint{ttl: d.Milliseconds(), name: sql.Name{Text: o.Key, Pos: o.KeyPos}}
	}
	return nil
}

// checkUsed refuses a hint that no join or aggregation of the block took.
func (s stateHints) checkUsed(in *scope) error {
	for _, h := range s {
		switch {
		case h.used:
		case !in.hasTable(h.name.Text):
			return diag.New(diag.Semantic, h.name.Pos, "hint STATE_TTL names %s, which is no table of the FROM clause", h.name.Text).
				WithHint("name a table by its alias if it has one: %s", in.tables())
		default:
			return diag.New(diag.Semantic, h.name.Pos, "hint STATE_TTL of %s has no effect", h.name.Text).
				WithHint("put it into the SELECT whose join or aggregation keeps the state, or remove it").
				WithDetail("it is for the tables that a join of this SELECT reads directly, or for the one table of an aggregation")
		}
	}
	return nil
}

// take is the hint for a table, nil when there is none.
func (s stateHints) take(table string) *int64 {
	h := s[table]
	if h == nil {
		return nil
	}
	h.used = true
	return &h.ttl
}

// hinted is a time-to-live: that of a hint, else the session's.
func hinted(hint *int64, session int64) int64 {
	if hint != nil {
		return *hint
	}
	return session
}
