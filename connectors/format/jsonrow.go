package format

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rowPlan reads an object into builder columns.
type rowPlan struct {
	r     *reader
	o     *object
	cols  []int // builder column of each field of o
	table string
}

func newRowPlan(r *reader, spec DecodeSpec) *rowPlan {
	fields := make([]types.Field, spec.Schema.Len())
	for i, c := range spec.Schema.Columns {
		fields[i] = types.Field{Name: c.Name, Type: c.Type}
	}
	return planFields(r, spec.Table, fields, spec.Targets)
}

// planFields makes the plan of an object with the given members.
func planFields(r *reader, table string, members []types.Field, targets []Target) *rowPlan {
	pl := &rowPlan{r: r, table: table}
	names, wanted := make([]string, len(members)), make([]int, len(members))
	inside := make([][]Target, len(members))
	for i, m := range members {
		names[i], wanted[i] = m.Name, -1
	}
	var fields []field
	want := func(i int, f field, col int) {
		wanted[i] = len(fields)
		fields = append(fields, f)
		pl.cols = append(pl.cols, col)
	}
	for _, t := range targets {
		if len(t.Path) > 0 {
			inside[t.Field] = append(inside[t.Field], Target{Field: t.Path[0], Path: t.Path[1:], Col: t.Col})
			continue
		}
		want(t.Field, field{name: names[t.Field], c: newConv(members[t.Field].Type)}, t.Col)
	}
	for i, list := range inside {
		if list != nil {
			want(i, field{name: names[i], c: newConv(members[i].Type), sub: planFields(r, table, members[i].Type.Fields, list)}, -1)
		}
	}
	pl.o = newObject(names, wanted, fields)
	return pl
}

// bind points the fields at the columns of out.
func (pl *rowPlan) bind(out *batch.Builder) {
	for i, c := range pl.cols {
		f := &pl.o.fields[i]
		if f.sub != nil {
			f.sub.bind(out)
			continue
		}
		f.col = out.Cols[c]
	}
}

// read appends the object at p to the bound columns, which hold n values each. It returns -1 for malformed text and
// bad for a value that does not fit its column; then columns may have values too many.
func (pl *rowPlan) read(p, n int) (int, status) {
	r, o, b := pl.r, pl.o, pl.r.b
	p = skipSpace(b, p+1)
	if p < len(b) && b[p] == '}' {
		return p + 1, pl.finish(p, n)
	}
	o.began()
	next := 0
	for {
		var s *slot
		if next < len(o.slots) && o.learned == nil {
			t := o.slots[next]
			if k := t.key; len(b)-p > len(k) && string(b[p:p+len(k)]) == k {
				s = t
				p += len(k)
				next++
				if b[p] <= ' ' {
					p = skipSpace(b, p)
				}
			}
		}
		if s == nil {
			if p, s = r.key(p, o, &next); p < 0 {
				return -1, bad
			}
		}
		if s == nil || s.f < 0 {
			p = skipMember(b, p)
		} else if f := &o.fields[s.f]; !f.plain(b, &p, n) {
			var st status
			if p, st = pl.member(p, n, f); st == bad {
				return p, bad
			}
		}
		if p < 0 {
			return -1, bad
		}
		if p < len(b) && b[p] == ',' {
			p++
			if p < len(b) && b[p] <= ' ' {
				p = skipSpace(b, p)
			}
			continue
		}
		var more bool
		if p, more = r.comma(p, '}'); p < 0 {
			return -1, bad
		} else if !more {
			break
		}
	}
	o.ended()
	return p, pl.finish(p, n)
}

// skipMember is skipValue with its frequent case in line.
func skipMember(b []byte, p int) int {
	if p < len(b) && b[p] == '"' {
		if q := stringStop(b, p+1); q < len(b) && b[q] == '"' {
			return q + 1
		}
	}
	return skipValue(b, p, 1)
}

// plain handles the frequent forms of the frequent types: short integers, strings without escapes, timestamps in their
// usual spelling. It reports whether it did; then p is behind the value.
func (f *field) plain(b []byte, at *int, n int) bool {
	p, col := *at, f.col
	if p >= len(b) || col == nil || col.Len() != n {
		return false
	}
	switch f.c.kind {
	case types.Int, types.BigInt:
		neg := b[p] == '-'
		if neg {
			p++
		}
		st := p
		var v int64
		for p < len(b) {
			x := b[p] - '0'
			if x > 9 {
				break
			}
			v = v*10 + int64(x)
			p++
		}
		if p == st || p-st > 18 || p == len(b) || !delimits(b[p]) || (b[st] == '0' && p > st+1) {
			return false
		}
		if neg {
			v = -v
		}
		if v < f.c.lo || v > f.c.hi {
			return false
		}
		col.AppendI64(v)
	case types.Varchar, types.Char:
		if b[p] != '"' {
			return false
		}
		q := stringStop(b, p+1)
		if q >= len(b) || b[q] != '"' {
			return false
		}
		col.AppendStr(text(b[p+1 : q]))
		p = q + 1
	case types.Timestamp:
		if f.c.ty.Precision != 3 || len(b)-p < 25 || b[p] != '"' || b[p+24] != '"' || b[p+11] != ' ' {
			return false
		}
		us, ok := parseMillis(text(b[p+1 : p+24]))
		if !ok {
			return false
		}
		col.AppendI64(us)
		p += 25
	default:
		return false
	}
	*at = p
	return true
}

// parseMillis reads "yyyy-MM-dd HH:mm:ss.SSS" as microseconds; unusual but valid texts are left to parseTimestamp.
func parseMillis(s string) (int64, bool) {
	_ = s[22]
	c, y, mo, d := two(s, 0), two(s, 2), two(s, 5), two(s, 8)
	h, mi, sec, f := two(s, 11), two(s, 14), two(s, 17), two(s, 20)
	g := int(s[22] - '0')
	if c|y|mo|d|h|mi|sec|f < 0 || g > 9 || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':' || s[19] != '.' ||
		mo-1 > 11 || mo == 0 || d == 0 || d > 28 && d > types.DaysInMonth(c*100+y, mo) || h > 23 || mi > 59 || sec > 59 {
		return 0, false
	}
	return ((types.DaysFromCivil(c*100+y, mo, d)*24+int64(h))*60+int64(mi))*60e6 + int64(sec)*1e6 + int64(f*10+g)*1e3, true
}

// member reads any value into f's column.
func (pl *rowPlan) member(p, n int, f *field) (int, status) {
	if f.sub != nil {
		return pl.inner(p, n, f)
	}
	if f.col.Len() > n {
		f.col.Pop() // a duplicate: the last wins
	}
	r := pl.r
	p, st := r.value(p, f.c, 1)
	if p < 0 {
		return -1, bad
	}
	if st == bad {
		if !r.ignoreErrors {
			r.field = joinPath(f.name, r.field)
			return p, bad
		}
		r.lenient++
		st = null
	}
	if st == null {
		f.col.AppendNull()
		return p, good
	}
	r.appendTo(f.col, f.c)
	return p, good
}

// inner reads a member of which members are wanted.
func (pl *rowPlan) inner(p, n int, f *field) (int, status) {
	r := pl.r
	f.sub.drop(n) // a duplicate: the last wins
	if p < len(r.b) && r.b[p] == '{' {
		p, st := f.sub.read(p, n)
		if st == bad {
			r.field = joinPath(f.name, r.field)
		}
		return p, st
	}
	p, st := r.value(p, f.c, 1) // NULL, or what is wrong with it
	if p < 0 {
		return -1, bad
	}
	if st == bad {
		if !r.ignoreErrors {
			r.field = joinPath(f.name, r.field)
			return p, bad
		}
		r.lenient++
	}
	f.sub.absent(n)
	return p, good
}

// drop removes what the columns have beyond n values.
func (pl *rowPlan) drop(n int) {
	for i := range pl.o.fields {
		f := &pl.o.fields[i]
		if f.sub != nil {
			f.sub.drop(n)
		} else if f.col.Len() > n {
			f.col.Pop()
		}
	}
}

// absent gives the columns the NULLs of an object that is not there.
func (pl *rowPlan) absent(n int) {
	for i := range pl.o.fields {
		f := &pl.o.fields[i]
		if f.sub != nil {
			f.sub.absent(n)
		} else if f.col.Len() == n {
			f.col.AppendNull()
		}
	}
}

// missing reports that the object did not have the member.
func (f *field) missing(n int) bool {
	if f.sub == nil {
		return f.col.Len() == n
	}
	return len(f.sub.o.fields) > 0 && f.sub.o.fields[0].missing(n)
}

// appendTo appends the last good value.
func (r *reader) appendTo(col *batch.ColBuilder, c *conv) {
	switch c.phys {
	case types.PhysI64:
		col.AppendI64(r.v.I64)
	case types.PhysF64:
		col.AppendF64(r.v.F64)
	case types.PhysBool:
		col.AppendBool(r.v.Bool)
	case types.PhysI128:
		col.AppendI128(r.v.I128())
	case types.PhysStr:
		if c.ty.IsNested() {
			r.scratch = types.AppendNested(r.scratch[:0], r.v, c.ty)
			r.v.Str = r.strs.keep(r.scratch)
		}
		col.AppendStr(r.v.Str)
	}
}

// finish gives the columns that got nothing their NULL.
func (pl *rowPlan) finish(p, n int) status {
	for i := range pl.o.fields {
		f := &pl.o.fields[i]
		if !f.missing(n) {
			continue
		}
		if pl.r.failOnMissing {
			pl.r.badFrom, pl.r.badTo, pl.r.field = p-1, p-1, f.name
			return pl.r.fail("the field is missing")
		}
		if f.sub != nil {
			f.sub.absent(n)
		} else {
			f.col.AppendNull()
		}
	}
	return good
}

// begin starts a message.
func (r *reader) begin(m []byte) {
	r.b = m
	r.stack, r.lists = r.stack[:0], r.lists[:0]
	r.why, r.field, r.badFrom, r.badTo = "", "", 0, 0
}

// badValue is the error for a value of the current message.
func (r *reader) badValue() *BadRecord {
	return &BadRecord{Column: r.field, Offset: r.badFrom, Reason: r.why, Value: shorten(r.b[r.badFrom:r.badTo])}
}
