package op

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// MaterializeSpec describes a sink materialiser.
type MaterializeSpec struct {
	Input    *types.Schema
	Key      []int // the sink's primary key
	InputKey []int // the input's upsert key, nil when it has none: then whole rows are compared
	TTL      int64 // ms, 0 = none
}

// NewMaterialize is Flink's SinkUpsertMaterializer: where the query's upsert key differs from the sink's primary key,
// changes of one primary key can arrive out of order. It keeps the rows of each primary key in arrival order and
// shows the sink the last one. Rows must be exchanged by Key.
func NewMaterialize(spec MaterializeSpec) func() exec.Operator {
	return func() exec.Operator { return &materialize{spec: spec} }
}

type materialize struct {
	exec.Stateless
	spec    MaterializeSpec
	missing *exec.Counter
	table   checkpoint.Table
	enc     *exec.KeyEncoder
	same    *exec.KeyEncoder // columns that identify a row of the input; nil = all
	keys    checkpoint.Keys
	refs    []checkpoint.Ref
	row, id []byte
	list    []byte
	large   largeLists
	gone    []checkpoint.Ref
	out     *batch.Builder
}

// Open implements exec.Operator.
func (m *materialize) Open(s exec.Subtask) (err error) {
	m.enc = exec.NewKeyEncoder(m.spec.Key)
	if m.spec.InputKey != nil {
		m.same = exec.NewKeyEncoder(m.spec.InputKey)
	}
	m.missing = s.Counter("materialize-missing")
	m.out = batch.NewBuilder(m.spec.Input)
	format := "list/1:" + fmt.Sprint(m.spec.InputKey) + rowFormat(m.spec.Input)
	if m.table, err = s.Table(checkpoint.TableOptions{Name: "rows", Format: format, TTL: m.spec.TTL}); err != nil {
		return err
	}
	return m.large.open(s, format, m.spec.TTL)
}

// Process implements exec.Operator. A row's value in state is its list: per entry uvarint length of the identity,
// identity, uvarint length of the row, row; or it says that the list is large. An emptied list stays until the end of the batch.
func (m *materialize) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	m.enc.Encode(b, &m.keys)
	m.refs = resize(m.refs, m.keys.Len())
	if err := m.table.Probe(&m.keys, m.refs); err != nil {
		return err
	}
	m.gone = m.gone[:0]
	for i := range m.refs {
		r := b.Row(i)
		if m.refs[i] == checkpoint.NoRow {
			ref, created, err := m.table.Insert(&m.keys, i, 0)
			if err != nil {
				return err
			}
			m.refs[i] = ref
			if created {
				m.gone = append(m.gone, ref)
			}
		}
		m.row = appendRow(m.row[:0], b, r)
		m.id = m.id[:0]
		if m.same != nil {
			m.id = m.same.AppendKey(m.id, b, r)
		}
		if err := m.change(b, i, r); err != nil {
			return fmt.Errorf("materialize state: %w", err)
		}
		if m.out.Full() {
			if err := flush(m.out, out); err != nil {
				return err
			}
		}
	}
	for _, ref := range m.gone {
		if len(m.table.Value(ref)) == 0 {
			m.table.Delete(ref)
		}
	}
	if err := m.large.done(); err != nil {
		return err
	}
	return flush(m.out, out)
}

// change applies row r of b, of key i.
func (m *materialize) change(b *batch.Batch, i, r int) error {
	ref := m.refs[i]
	list := m.table.Value(ref)
	if isLarge(list) {
		return m.changeLarge(b, i, r, list)
	}
	start, end, found := m.find(list)
	if !b.Kind(r).IsRetract() {
		kind := types.UpdateAfter
		if len(list) == 0 {
			kind = types.Insert
		}
		m.list = m.list[:0]
		if found && m.same != nil { // replace in place
			m.list = append(m.list, list[:start]...)
			m.list = m.appendEntry(m.list)
			m.list = append(m.list, list[end:]...)
		} else {
			m.list = m.appendEntry(append(m.list, list...))
		}
		copyRow(m.out, b, r, kind)
		if outgrown(m.list) {
			return m.grow(i)
		}
		m.table.Set(ref, m.list)
		return nil
	}
	if !found { // its insertion expired
		m.missing.Add(1)
		return nil
	}
	wasLast := end == len(list)
	m.list = append(append(m.list[:0], list[:start]...), list[end:]...)
	m.table.Set(ref, m.list)
	switch {
	case len(m.list) == 0:
		copyRow(m.out, b, r, types.Delete)
		m.gone = append(m.gone, ref)
	case wasLast:
		return emitRow(m.out, lastRow(m.list), types.UpdateAfter)
	}
	return nil
}

// grow keeps m.list as a large one of key i.
func (m *materialize) grow(i int) error {
	b, err := m.large.at(&m.keys, i)
	if err != nil {
		return err
	}
	value, err := m.large.take(b, m.list)
	if err != nil {
		return err
	}
	m.table.Set(m.refs[i], value)
	return nil
}

func (m *materialize) appendEntry(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(m.id)))
	dst = append(dst, m.id...)
	dst = binary.AppendUvarint(dst, uint64(len(m.row)))
	return append(dst, m.row...)
}

// find is the first entry with the current row's identity (or equal to the current row).
func (m *materialize) find(list []byte) (start, end int, ok bool) {
	for end < len(list) {
		start = end
		id, row, next := entry(list, start)
		end = next
		if m.same != nil && bytes.Equal(id, m.id) || m.same == nil && bytes.Equal(row, m.row) {
			return start, end, true
		}
	}
	return 0, 0, false
}

func entry(list []byte, p int) (id, row []byte, next int) {
	n, w := binary.Uvarint(list[p:])
	p += w
	id = list[p : p+int(n)]
	p += int(n)
	n, w = binary.Uvarint(list[p:])
	p += w
	return id, list[p : p+int(n)], p + int(n)
}

func lastRow(list []byte) (row []byte) {
	for p := 0; p < len(list); {
		_, row, p = entry(list, p)
	}
	return row
}
