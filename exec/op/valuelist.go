package op

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// valueList holds the values of one aggregate per group, for functions whose state is all of them. Entries of a group:
//
//	LISTAGG, ARRAY_AGG, JSON_ARRAYAGG, and FIRST_VALUE and LAST_VALUE under retraction
//	                 's', number of arrival → value; under retraction also 'v', value, number → nothing
//	COLLECT          value → count, a varint; negative while a retraction precedes its insertion
//	PERCENTILE       value, order preserving → count, a varint; negative while a retraction precedes its insertion
//	JSON_OBJECTAGG   name → value as JSON, after a byte that is 0 for NULL
//
// Numbers are 8 bytes, big endian; values have the encoding of state keys, which ends by itself, so that one value is
// never the beginning of another.
type valueList struct {
	m       *multimap
	kind    expr.AggKind
	indexed bool
	nulls   bool   // members of an object may be NULL
	val     []byte // of the row at hand
	sub     []byte
	buf     []byte
	n       int
	more    bool
}

func openValueList(s exec.Subtask, name string, a *accumulator, retract bool, ttl int64) (*valueList, error) {
	format := "values/1:" + a.ArgType.String()
	if retract {
		format = "values/1/retract:" + a.ArgType.String()
	}
	m, err := openMultimap(s, name, format, ttl)
	return &valueList{m: m, kind: a.Kind, indexed: retract, nulls: a.KeepNulls}, err
}

// change adds (sign 1) or retracts (sign -1) the value in physical row r of v. seq is the number of the next value, of
// the group; it comes back.
func (l *valueList) change(b bucket, v *batch.Vec, r int, seq, sign int64) (int64, error) {
	switch l.kind {
	case expr.AggCollect:
		l.val = exec.AppendColumn(l.val[:0], v, r)
		return seq, l.count(b, sign)
	case expr.AggPercentile:
		return seq, l.weigh(b, v, v.Idx(r), sign)
	case expr.AggJSONObject:
		return seq, l.member(b, v, v.Idx(r), sign)
	}
	l.val = exec.AppendColumn(l.val[:0], v, r)
	if sign < 0 {
		return seq, l.removeFirst(b)
	}
	l.sub = binary.BigEndian.AppendUint64(append(l.sub[:0], 's'), uint64(seq))
	if err := b.put(l.sub, l.val); err != nil {
		return seq, err
	}
	if l.indexed {
		l.sub = append(append(l.sub[:0], 'v'), l.val...)
		l.sub = binary.BigEndian.AppendUint64(l.sub, uint64(seq))
		if err := b.put(l.sub, nil); err != nil {
			return seq, err
		}
	}
	return seq + 1, nil
}

// removeFirst removes the earliest of the values equal to l.val. There may be none after state has expired.
func (l *valueList) removeFirst(b bucket) error {
	l.sub = append(append(l.sub[:0], 'v'), l.val...)
	n, found := len(l.sub), false
	err := b.ascend(l.sub, func(sub, _ []byte) bool {
		if found = len(sub) == n+8 && bytes.HasPrefix(sub, l.sub); found {
			l.sub = append(l.sub, sub[n:]...)
		}
		return false
	})
	if err != nil || !found {
		return err
	}
	if _, err := b.remove(l.sub); err != nil {
		return err
	}
	l.buf = append(append(l.buf[:0], 's'), l.sub[n:]...)
	_, err = b.remove(l.buf)
	return err
}

func (l *valueList) count(b bucket, sign int64) error {
	old, ok, err := b.get(l.val)
	if err != nil {
		return err
	}
	n := sign
	if ok {
		x, _ := binary.Varint(old)
		n += x
	}
	if n == 0 {
		_, err = b.remove(l.val)
		return err
	}
	l.buf = binary.AppendVarint(l.buf[:0], n)
	return b.put(l.val, l.buf)
}

// member sets or removes a member of an object. The argument is a ROW of its name and its value as JSON text.
func (l *valueList) member(b bucket, v *batch.Vec, i int, sign int64) error {
	name, _ := types.NestedAt(v.Str[i], v.Type, 0)
	value, _ := types.NestedAt(v.Str[i], v.Type, 1)
	if name.IsNull {
		return diag.New(diag.Data, diag.Pos{}, "the key of a JSON object is NULL").
			WithHint("leave such rows out: JSON_OBJECTAGG(...) FILTER (WHERE key IS NOT NULL)")
	}
	if value.IsNull && !l.nulls {
		return nil
	}
	l.sub = append(l.sub[:0], name.Str...)
	if sign < 0 {
		_, err := b.remove(l.sub)
		return err
	}
	if _, ok, err := b.get(l.sub); err != nil || ok {
		if err == nil {
			err = diag.New(diag.Data, diag.Pos{}, "key %s is in the JSON object already", strconv.Quote(name.Str)).
				WithDetail("JSON_OBJECTAGG takes a key once per group").
				WithHint("group by the key too, or aggregate its values first: SELECT k, MAX(v) ... GROUP BY k")
		}
		return err
	}
	l.buf = append(l.buf[:0], boolByte(!value.IsNull))
	l.buf = append(l.buf, value.Str...)
	return b.put(l.sub, l.buf)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// end is the first or the last value of the group, encoded; borrowed until the next change.
func (l *valueList) end(b bucket, last bool) (val []byte, ok bool, err error) {
	visit := func(sub, v []byte) bool {
		if ok = sub[0] == 's'; ok {
			val = v
		}
		return false
	}
	if last {
		err = b.descend([]byte{'t'}, visit)
	} else {
		err = b.ascend(nil, visit)
	}
	return val, ok, err
}

// result builds the aggregate's value from the entries of a group; ok is false for NULL.
func (l *valueList) result(b bucket, a *accumulator) (s string, ok bool, err error) {
	l.buf, l.n, l.more = l.buf[:0], 0, false
	switch a.Kind {
	case expr.AggPercentile:
		return l.percentiles(b, a)
	case expr.AggJSONArray:
		l.buf = append(l.buf, '[')
	case expr.AggJSONObject:
		l.buf = append(l.buf, '{')
	}
	err = b.ascend(nil, func(sub, val []byte) bool { return l.add(a, sub, val) })
	if err != nil {
		return "", false, err
	}
	switch a.Kind {
	case expr.AggJSONArray:
		return string(append(l.buf, ']')), true, nil
	case expr.AggJSONObject:
		return string(append(l.buf, '}')), true, nil
	case expr.AggList:
		return string(l.buf), l.n > 0, nil
	case expr.AggCollect:
		l.n *= 2
	case expr.AggArray:
		if l.n == 0 {
			return "", false, nil
		}
	}
	l.val = types.AppendListLen(l.val[:0], l.n)
	return string(append(l.val, l.buf...)), true, nil
}

// add appends one entry of the group to the result.
func (l *valueList) add(a *accumulator, sub, val []byte) bool {
	switch a.Kind {
	case expr.AggCollect:
		if n, _ := binary.Varint(val); n > 0 {
			l.buf = append(append(l.buf, sub...), 1)
			l.buf = binary.LittleEndian.AppendUint64(l.buf, uint64(n))
			l.n++
		}
		return true
	case expr.AggJSONObject:
		if l.comma(","); val[0] == 0 {
			val = []byte("\x01null")
		}
		l.buf = append(expr.AppendJSONText(l.buf, string(sub)), ':')
		l.buf = append(l.buf, val[1:]...)
		return true
	}
	if sub[0] != 's' {
		return false
	}
	switch a.Kind {
	case expr.AggList:
		l.comma(a.Separator)
		l.buf = append(l.buf, text(val)...)
	case expr.AggJSONArray:
		if l.comma(","); val[0] == 0 {
			l.buf = append(l.buf, "null"...)
		} else {
			l.buf = append(l.buf, text(val)...)
		}
	default:
		l.buf = append(l.buf, val...)
	}
	l.n++
	return true
}

func (l *valueList) comma(sep string) {
	if l.more {
		l.buf = append(l.buf, sep...)
	}
	l.more = true
}

// text is the encoded string in val, which is not NULL.
func text(val []byte) []byte {
	n, w := binary.Uvarint(val[1:])
	return val[1+w : 1+w+int(n)]
}

// storedWords are the words of the encoded value val, of a fixed-size class, as setValue stores them.
func storedWords(p types.Phys, val []byte) (lo, hi int64) {
	switch val = val[1:]; p {
	case types.PhysBool:
		return int64(val[0]), 0
	case types.PhysI128:
		return word(val, 0), word(val, 8)
	}
	return word(val, 0), 0
}

// storedText is what a tail holds of the encoded value val: the string, or the nested value as columns hold it.
func storedText(t types.Type, val []byte) []byte {
	if t.IsNested() {
		return val[1:]
	}
	return text(val)
}
