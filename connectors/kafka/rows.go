package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// rowReader decodes records into the columns a query needs: value fields by the value format, key fields by the key
// format, metadata from the record itself.
type rowReader struct {
	s     *source
	value format.Decoder
	key   format.Decoder // nil without key format
	keys  *batch.Builder // the key fields of the records at hand, in order of keyCols
	meta  []metaColumn
	// fromKey are output columns that the key alone supplies; tombKey those it supplies for a tombstone. keyCol is
	// the column of keys.
	fromKey, tombKey []keyColumn
	tombNull         []int // output columns that are NULL in a tombstone
	bad              badRecords

	// of the records at hand
	recs    []*kgo.Record
	keyRows []int32 // row in keys per record, -1 = none
	msgs    [][]byte
	keyMsgs [][]byte
	out     *batch.Builder
	keyVecs []*batch.Vec
	stats   readStats
}

type keyColumn struct{ out, key int }

type readStats struct {
	records, bad int
	bytes        int64
}

func newRowReader(s *source) (*rowReader, error) {
	x := s.x
	r := &rowReader{s: s}
	valueAt, keyAt := fieldIndex(x.value), fieldIndex(x.key)
	keySchema := &types.Schema{}
	spec := format.DecodeSpec{Schema: schemaOf(x.value), Options: x.v.Sub(x.fm.ValuePrefix), Table: x.t.Name, Session: s.spec.Session}
	var keyTargets []format.Target
	for out, col := range s.spec.Columns {
		c := x.t.Columns[col]
		if c.Kind == catalog.Metadata {
			if err := r.addMetadata(&spec, c, out); err != nil {
				return nil, err
			}
			r.tombNull = appendFormatMeta(r.tombNull, c, out)
			continue
		}
		vi, inValue := valueAt[col]
		ki, inKey := keyAt[col]
		if inValue {
			spec.Targets = append(spec.Targets, format.Target{Field: vi, Path: s.spec.Path(out), Col: out})
		}
		if !inKey {
			r.tombNull = append(r.tombNull, out)
			continue
		}
		k := keyColumn{out: out, key: keySchema.Len()}
		keySchema.Columns = append(keySchema.Columns, types.Column{Name: c.Name, Type: c.Type})
		keyTargets = append(keyTargets, format.Target{Field: ki, Col: k.key})
		r.tombKey = append(r.tombKey, k)
		if !inValue {
			r.fromKey = append(r.fromKey, k)
		}
	}
	var err error
	if r.value, err = x.fm.Value.NewDecoder(spec); err != nil {
		return nil, err
	}
	if x.fm.Key != nil {
		r.keys = batch.NewBuilder(keySchema)
		r.key, err = x.fm.Key.NewDecoder(format.DecodeSpec{Schema: schemaOf(x.key), Targets: keyTargets,
			Options: x.v.Sub(x.fm.KeyPrefix), Table: x.t.Name, Session: s.spec.Session})
		if err != nil {
			return nil, err
		}
	}
	return r, r.bad.open(s)
}

func fieldIndex(fs []field) map[int]int {
	m := map[int]int{}
	for i, f := range fs {
		m[f.col] = i
	}
	return m
}

// read appends the rows of recs, records of one partition, to out.
func (r *rowReader) read(ctx context.Context, s *split, recs []*kgo.Record, out *batch.Builder) (readStats, error) {
	r.out, r.stats = out, readStats{}
	r.recs, r.keyRows = r.recs[:0], r.keyRows[:0]
	for _, rec := range recs {
		if !rec.Attrs.IsControl() {
			r.stats.records++
			r.stats.bytes += int64(len(rec.Key) + len(rec.Value))
			r.recs = append(r.recs, rec)
		}
	}
	if r.key != nil {
		if err := r.decodeKeys(ctx, s); err != nil {
			return r.stats, err
		}
	}
	for from := 0; from < len(r.recs); {
		to := from
		if r.s.x.upsert && r.recs[from].Value == nil {
			r.tombstone(from)
			from++
			continue
		}
		for to < len(r.recs) && !(r.s.x.upsert && r.recs[to].Value == nil) {
			to++
		}
		if err := r.decodeValues(ctx, s, from, to); err != nil {
			return r.stats, err
		}
		from = to
	}
	return r.stats, r.bad.flush(ctx)
}

// decodeKeys decodes the keys of r.recs. Records whose key is bad, or that have none, are bad records: Flink drops the
// latter silently.
func (r *rowReader) decodeKeys(ctx context.Context, s *split) error {
	const noRow, reported = -1, -2
	r.keys.Reset()
	r.keyMsgs = r.keyMsgs[:0]
	for _, rec := range r.recs {
		r.keyMsgs = append(r.keyMsgs, rec.Key)
		r.keyRows = append(r.keyRows, noRow)
	}
	for from := 0; from < len(r.recs); {
		many := -1
		n, err := r.key.Decode(r.keyMsgs[from:], r.keys, func(i int, k types.RowKind) {
			if r.keyRows[from+i] >= 0 {
				many = from + i
			}
			r.keyRows[from+i] = int32(r.keys.Len())
			r.keys.RowDone()
		})
		if many >= 0 {
			return r.at(s, r.recs[many], diag.New(diag.Unsupported, diag.Pos{}, "a key with several rows is not supported"))
		}
		if err == nil {
			break
		}
		bad := from + n
		r.keyRows[bad] = reported
		if err := r.badRecord(ctx, s, r.recs[bad], "key", err); err != nil {
			return err
		}
		from = bad + 1
	}
	r.keyVecs = r.keys.Finish().Cols
	kept := 0
	for i, rec := range r.recs {
		switch {
		case r.keyRows[i] >= 0:
			r.recs[kept], r.keyRows[kept] = rec, r.keyRows[i]
			kept++
		case r.keyRows[i] == noRow:
			if err := r.badRecord(ctx, s, rec, "key", &format.BadRecord{Column: r.s.x.key[0].name, Offset: -1, Reason: "the record has no key to take it from"}); err != nil {
				return err
			}
		}
	}
	r.recs, r.keyRows = r.recs[:kept], r.keyRows[:kept]
	return nil
}

// decodeValues decodes the values of r.recs[from:to].
func (r *rowReader) decodeValues(ctx context.Context, s *split, from, to int) error {
	r.msgs = r.msgs[:0]
	for _, rec := range r.recs[from:to] {
		r.msgs = append(r.msgs, rec.Value)
	}
	for base := from; base < to; {
		n, err := r.value.Decode(r.msgs[base-from:], r.out, func(i int, k types.RowKind) {
			r.row(base+i, k)
		})
		if err == nil {
			return nil
		}
		bad := base + n
		if err := r.badRecord(ctx, s, r.recs[bad], "value", err); err != nil {
			return err
		}
		base = bad + 1
	}
	return nil
}

// row completes the row of record i.
func (r *rowReader) row(i int, k types.RowKind) {
	if r.s.x.upsert {
		k = types.UpdateAfter
	}
	for _, c := range r.fromKey {
		r.out.Cols[c.out].AppendFrom(r.keyVecs[c.key], int(r.keyRows[i]))
	}
	for j := range r.meta {
		r.meta[j].append(r.out, r.recs[i])
	}
	r.out.RowKindDone(k)
}

// tombstone appends the deletion that record i means: its key columns, every other column NULL.
func (r *rowReader) tombstone(i int) {
	for _, c := range r.tombKey {
		r.out.Cols[c.out].AppendFrom(r.keyVecs[c.key], int(r.keyRows[i]))
	}
	for _, c := range r.tombNull {
		r.out.Cols[c].AppendNull()
	}
	for j := range r.meta {
		r.meta[j].append(r.out, r.recs[i])
	}
	r.out.RowKindDone(types.Delete)
}

// at names the place of a record.
func (r *rowReader) at(s *split, rec *kgo.Record, err error) error {
	e := diag.New(diag.Data, r.s.spec.Table.Options.Pos("topic"), "table %s: %s, offset %d", r.s.spec.Table.Name, s.partition, rec.Offset).Wrap(err)
	var d *diag.Error
	if errors.As(err, &d) {
		e.Code, e.Detail, e.Hint = d.Code, d.Detail, d.Hint
	}
	return e
}

func (r *rowReader) badRecord(ctx context.Context, s *split, rec *kgo.Record, part string, err error) error {
	var bad *format.BadRecord
	if !errors.As(err, &bad) {
		return r.at(s, rec, err)
	}
	r.stats.bad++
	return r.bad.handle(ctx, r, s, rec, part, bad)
}

func (r *rowReader) close() error { return r.bad.close() }
