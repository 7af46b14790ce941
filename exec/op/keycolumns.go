package op

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var errKeyColumn = errors.New("an encoded key is damaged")

// keyColumns turns encoded keys back into columns, a column at a time. Its memory is reused.
type keyColumns struct {
	at []int // per key, where its next column is
}

// decode appends the columns of keys to cols. The texts of a column are copied at once.
func (d *keyColumns) decode(keys [][]byte, cols []*batch.ColBuilder) error {
	d.at = resize(d.at, len(keys))
	clear(d.at)
	for _, c := range cols {
		var err error
		switch p := c.Type.Phys(); {
		case p == types.PhysI64:
			err = d.ints(keys, c)
		case p == types.PhysStr && !c.Type.IsNested():
			err = d.texts(keys, c)
		default:
			err = d.others(keys, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *keyColumns) ints(keys [][]byte, c *batch.ColBuilder) error {
	first := c.AppendN(len(keys))
	for i, key := range keys {
		switch key = key[min(d.at[i], len(key)):]; {
		case len(key) >= 9 && key[0] != 0:
			c.I64[first+i] = int64(binary.LittleEndian.Uint64(key[1:]))
			d.at[i] += 9
		case len(key) > 0 && key[0] == 0:
			c.I64[first+i] = 0
			c.Nullify(first + i)
			d.at[i]++
		default:
			return errKeyColumn
		}
	}
	return nil
}

func (d *keyColumns) texts(keys [][]byte, c *batch.ColBuilder) error {
	total := 0
	for i, key := range keys {
		text, _, _, ok := keyText(key[min(d.at[i], len(key)):])
		if !ok {
			return errKeyColumn
		}
		total += len(text)
	}
	var all strings.Builder
	all.Grow(total)
	for i, key := range keys {
		text, _, _, _ := keyText(key[d.at[i]:])
		all.Write(text)
	}
	rest, first := all.String(), c.AppendN(len(keys))
	for i, key := range keys {
		text, n, null, _ := keyText(key[d.at[i]:])
		c.Str[first+i], rest = rest[:len(text)], rest[len(text):]
		if null {
			c.Nullify(first + i)
		}
		d.at[i] += n
	}
	return nil
}

// keyText is the text that key begins with and how many bytes that took.
func keyText(key []byte) (text []byte, size int, null, ok bool) {
	if len(key) == 0 {
		return nil, 0, false, false
	}
	if key[0] == 0 {
		return nil, 1, true, true
	}
	n, w := binary.Uvarint(key[1:])
	if w <= 0 || uint64(len(key)-1-w) < n {
		return nil, 0, false, false
	}
	size = 1 + w + int(n)
	return key[1+w : size], size, false, true
}

func (d *keyColumns) others(keys [][]byte, c *batch.ColBuilder) error {
	one := [1]*batch.ColBuilder{c}
	for i, key := range keys {
		rest, err := exec.DecodeKey(key[min(d.at[i], len(key)):], one[:])
		if err != nil {
			return err
		}
		d.at[i] = len(key) - len(rest)
	}
	return nil
}
