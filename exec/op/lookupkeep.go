package op

import (
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// keptLookups is the state of a lookup join that takes rows back as they were sent: for each left row the rows that
// its lookup found, before the further condition (Flink: upsert materialisation of a lookup join). Left rows that are
// equal in the columns that tell them apart have an entry each, the newest last.
type keptLookups struct {
	enc     *exec.KeyEncoder
	keys    checkpoint.Keys
	rows    *multimap
	unique  bool // one entry a key: a new one takes the place of the old
	missing *exec.Counter
	sub     []byte
	list    []byte
	taken   []byte // entries that were removed in this batch
	found   [][]byte
}

func openKeptLookups(s exec.Subtask, spec *LookupJoinSpec) (k *keptLookups, err error) {
	by := spec.KeepBy
	for i := 0; spec.KeepBy == nil && i < len(spec.Left.Columns); i++ {
		by = append(by, i)
	}
	k = &keptLookups{enc: exec.NewKeyEncoder(by), unique: spec.KeepBy != nil, missing: s.Counter("lookup-missing"), sub: make([]byte, 8)}
	k.rows, err = openMultimap(s, "found", fmt.Sprintf("lookup/1:%v:%s", spec.KeepBy, rowFormat(spec.Lookup.Schema)), spec.TTL)
	return k, err
}

// begin brings the entries of a batch of left rows into memory.
func (k *keptLookups) begin(b *batch.Batch) error {
	k.enc.Encode(b, &k.keys)
	k.taken = k.taken[:0]
	return k.rows.probe(&k.keys)
}

// put keeps what was found for row i of the batch.
func (k *keptLookups) put(i int, found [][]byte) error {
	b := k.rows.at(i)
	n := uint64(0)
	if !k.unique {
		sub, _, ok, err := b.last()
		if err != nil {
			return err
		}
		if ok {
			n = binary.BigEndian.Uint64(sub) + 1
		}
	}
	binary.BigEndian.PutUint64(k.sub, n)
	k.list = k.list[:0]
	for _, r := range found {
		k.list = binary.AppendUvarint(k.list, uint64(len(r)))
		k.list = append(k.list, r...)
	}
	return b.put(k.sub, k.list)
}

// take removes the newest entry of row i and returns what was found for it, its rows valid until the next batch. A row whose entry
// has expired is counted, and had none.
func (k *keptLookups) take(i int) ([][]byte, error) {
	b := k.rows.at(i)
	sub, val, ok, err := b.last()
	if err != nil {
		return nil, err
	}
	k.found = k.found[:0]
	if !ok {
		k.missing.Add(1)
		return nil, nil
	}
	copy(k.sub, sub)
	start := len(k.taken)
	k.taken = append(k.taken, val...)
	for rest := k.taken[start:]; len(rest) > 0; {
		n, w := binary.Uvarint(rest)
		if w <= 0 || n > uint64(len(rest)-w) {
			return nil, fmt.Errorf("lookup state is damaged")
		}
		k.found = append(k.found, rest[w:w+int(n)])
		rest = rest[w+int(n):]
	}
	_, err = b.remove(k.sub)
	return k.found, err
}
