package op

import (
	"bytes"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// NormalizeSpec describes a ChangelogNormalize: it makes a regular changelog of an upsert stream.
type NormalizeSpec struct {
	Input            *types.Schema
	Key              []int // primary key columns
	EmitUpdateBefore bool
	TTL              int64 // ms, 0 = none
}

// NewNormalize is Flink's ChangelogNormalize: it keeps the last row per key, so that an update carries its old row, a
// deletion the full row, and repeated rows and deletions of unknown keys disappear. Rows must be exchanged by Key.
func NewNormalize(spec NormalizeSpec) func() exec.Operator {
	return func() exec.Operator { return &normalize{spec: spec} }
}

type normalize struct {
	exec.Stateless
	spec  NormalizeSpec
	table checkpoint.Table
	enc   *exec.KeyEncoder
	keys  checkpoint.Keys
	refs  []checkpoint.Ref
	row   []byte
	gone  []checkpoint.Ref // rows deleted in this batch: an empty value, removed at its end
	out   *batch.Builder
}

// Open implements exec.Operator.
func (n *normalize) Open(s exec.Subtask) (err error) {
	n.enc = exec.NewKeyEncoder(n.spec.Key)
	n.out = batch.NewBuilder(n.spec.Input)
	n.table, err = s.Table(checkpoint.TableOptions{Name: "rows", Format: rowFormat(n.spec.Input), TTL: n.spec.TTL})
	return err
}

// Process implements exec.Operator.
func (n *normalize) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	n.enc.Encode(b, &n.keys)
	n.refs = resize(n.refs, n.keys.Len())
	if err := n.table.Probe(&n.keys, n.refs); err != nil {
		return err
	}
	n.gone = n.gone[:0]
	for i := range n.refs {
		r := b.Row(i)
		var err error
		if b.Kind(r).IsRetract() {
			err = n.remove(i)
		} else {
			err = n.put(b, i, r)
		}
		if err != nil {
			return fmt.Errorf("normalize state: %w", err)
		}
		if n.out.Len() >= batch.Size-1 {
			if err := flush(n.out, out); err != nil {
				return err
			}
		}
	}
	for _, ref := range n.gone {
		if len(n.table.Value(ref)) == 0 {
			n.table.Delete(ref)
		}
	}
	return flush(n.out, out)
}

func (n *normalize) put(b *batch.Batch, i, r int) error {
	n.row = appendRow(n.row[:0], b, r)
	ref := n.refs[i]
	if ref == checkpoint.NoRow {
		var err error
		// Also finds a row inserted earlier in this batch.
		if ref, _, err = n.table.Insert(&n.keys, i, 0); err != nil {
			return err
		}
		n.refs[i] = ref
	}
	old := n.table.Value(ref)
	switch {
	case len(old) == 0:
		copyRow(n.out, b, r, types.Insert)
	case bytes.Equal(old, n.row) && n.spec.TTL == 0:
		return nil
	default:
		if n.spec.EmitUpdateBefore {
			if err := emitRow(n.out, old, types.UpdateBefore); err != nil {
				return err
			}
		}
		copyRow(n.out, b, r, types.UpdateAfter)
	}
	n.table.Set(ref, n.row)
	return nil
}

func (n *normalize) remove(i int) error {
	ref := n.refs[i]
	if ref == checkpoint.NoRow {
		r, created, err := n.table.Insert(&n.keys, i, 0)
		if err != nil {
			return err
		}
		ref, n.refs[i] = r, r
		if created {
			n.gone = append(n.gone, ref)
			return nil
		}
	}
	old := n.table.Value(ref)
	if len(old) == 0 {
		return nil
	}
	if err := emitRow(n.out, old, types.Delete); err != nil {
		return err
	}
	n.table.Set(ref, nil)
	n.gone = append(n.gone, ref)
	return nil
}
