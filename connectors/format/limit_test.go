package format

// Goal: how far json is from code written by hand for the case, as a share of its speed. Method: a scanner and an encoder that know nothing but
// whole numbers, texts without escapes and timestamps of milliseconds read and write the same bids as json, in turn, and both must agree;
// processor time, least of the rounds. make json prints the table.

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// handKind is one of the three kinds of value that the code by hand knows.
type handKind int

const (
	handInt handKind = iota
	handText
	handTime // "yyyy-MM-dd HH:mm:ss.SSS", microseconds
	handSkip
)

// handField is a member: where its values go, and what stands before it.
type handField struct {
	kind  handKind
	key   string // `"name":`
	lead  string // `,"name":`, the first `{"name":`
	ints  []int64
	text  []string
	valid []uint64 // as the columns of a batch have
}

// hand is the limit: columns of a fixed number of rows.
type hand struct {
	fields []handField
	byName map[string]int
}

// newHand makes the columns of rows bids. Without all, only the whole numbers of three members and the time are kept.
func newHand(rows int, all bool) *hand {
	h := &hand{byName: map[string]int{}}
	for i, c := range bidSchema.Columns {
		h.byName[c.Name] = i
		f := handField{key: strconv.Quote(c.Name) + ":", valid: make([]uint64, (rows+63)/64)}
		if f.lead = "," + f.key; i == 0 {
			f.lead = "{" + f.key
		}
		switch {
		case !all && !slices.Contains(threeInts, i):
			f.kind = handSkip
		case c.Type.Kind == types.Timestamp:
			f.kind, f.ints = handTime, make([]int64, rows)
		case c.Type.Kind == types.Varchar:
			f.kind, f.text = handText, make([]string, rows)
		default:
			f.ints = make([]int64, rows)
		}
		h.fields = append(h.fields, f)
	}
	return h
}

// handStop is the first quote, backslash or control character at or after p.
func handStop(b []byte, p int) int {
	for p+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[p:])
		q, s := w^0x22*ones, w^0x5c*ones
		if m := ((q-ones)&^q | (s-ones)&^s | (w-0x20*ones)&^w) & highs; m != 0 {
			return p + bits.TrailingZeros64(m)>>3
		}
		p += 8
	}
	for p < len(b) && b[p] != '"' && b[p] != '\\' && b[p] >= 0x20 {
		p++
	}
	return p
}

// read reads an object into row r: members where they are expected cost a comparison, others a look-up, unknown ones are passed over. It
// reports false for what it does not know.
func (h *hand) read(b []byte, r int) bool {
	p, next := handSpace(b, 0), 0
	if p >= len(b) || b[p] != '{' {
		return false
	}
	for p++; ; p++ {
		var f *handField
		if next < len(h.fields) {
			if k := h.fields[next].key; len(b)-p > len(k) && string(b[p:p+len(k)]) == k {
				f = &h.fields[next]
				p += len(k)
				next++
			}
		}
		if f == nil {
			e := handSpace(b, p)
			if p = e; e >= len(b) || b[e] != '"' {
				return false
			}
			if p = handStop(b, e+1); p+1 >= len(b) || b[p] != '"' || b[p+1] != ':' {
				return false
			}
			if i, ok := h.byName[string(b[e+1:p])]; ok {
				f, next = &h.fields[i], i+1
			}
			p += 2
		}
		if p < len(b) && b[p] <= ' ' {
			p = handSpace(b, p)
		}
		if p = h.value(f, b, p, r); p < 0 {
			return false
		}
		if p < len(b) && b[p] <= ' ' {
			p = handSpace(b, p)
		}
		if p >= len(b) || b[p] != ',' {
			return p < len(b) && b[p] == '}'
		}
	}
}

func handSpace(b []byte, p int) int {
	for p < len(b) && b[p] <= ' ' {
		p++
	}
	return p
}

// value reads the value at p into row r of f's column and gives the place behind it, -1 for what it does not know.
func (h *hand) value(f *handField, b []byte, p, r int) int {
	if p >= len(b) {
		return -1
	}
	if f == nil || f.kind == handSkip {
		if b[p] == '"' {
			if p = handStop(b, p+1); p >= len(b) || b[p] != '"' {
				return -1
			}
			return p + 1
		}
		for p < len(b) && b[p] != ',' && b[p] != '}' && b[p] > ' ' {
			p++
		}
		return p
	}
	if b[p] == 'n' {
		if len(b)-p < 4 || string(b[p:p+4]) != "null" {
			return -1
		}
		return p + 4
	}
	switch f.kind {
	case handInt:
		negative := b[p] == '-'
		if negative {
			p++
		}
		from, v := p, int64(0)
		for p < len(b) {
			x := b[p] - '0'
			if x > 9 {
				break
			}
			v = v*10 + int64(x)
			p++
		}
		if p == from || p-from > 18 || p < len(b) && (b[p] == '.' || b[p]|0x20 == 'e') {
			return -1
		}
		if negative {
			v = -v
		}
		f.ints[r] = v
	case handTime:
		if len(b)-p < 25 || b[p] != '"' || b[p+24] != '"' {
			return -1
		}
		v, ok := handMicros(b[p+1 : p+24])
		if !ok {
			return -1
		}
		f.ints[r] = v
		p += 25
	case handText:
		e := handStop(b, p+1)
		if b[p] != '"' || e >= len(b) || b[e] != '"' {
			return -1
		}
		f.text[r] = unsafe.String(unsafe.SliceData(b[p+1:]), e-p-1)
		p = e + 1
	}
	f.valid[r>>6] |= 1 << (r & 63)
	return p
}

func handTwo(b []byte) (int64, bool) {
	x, y := b[0]-'0', b[1]-'0'
	return int64(x)*10 + int64(y), x <= 9 && y <= 9
}

func handMicros(b []byte) (int64, bool) {
	_ = b[22]
	c, ok1 := handTwo(b)
	y, ok2 := handTwo(b[2:])
	m, ok3 := handTwo(b[5:])
	d, ok4 := handTwo(b[8:])
	hour, ok5 := handTwo(b[11:])
	min, ok6 := handTwo(b[14:])
	s, ok7 := handTwo(b[17:])
	f, ok8 := handTwo(b[20:])
	g := b[22] - '0'
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && ok8) || g > 9 || b[4] != '-' || b[7] != '-' || b[10] != ' ' || b[13] != ':' || b[16] != ':' || b[19] != '.' {
		return 0, false
	}
	return ((types.DaysFromCivil(int(c*100+y), int(m), int(d))*24+hour)*60+min)*60e6 + s*1e6 + (f*10+int64(g))*1e3, true
}

// write appends row r as an object.
func (h *hand) write(dst []byte, r int) []byte {
	for i := range h.fields {
		f := &h.fields[i]
		dst = append(dst, f.lead...)
		switch f.kind {
		case handInt:
			dst = strconv.AppendInt(dst, f.ints[r], 10)
		case handTime:
			dst = append(dst, '"')
			dst = append(handAppendTime(dst, f.ints[r]), '"')
		case handText:
			s := f.text[r]
			if b := unsafe.Slice(unsafe.StringData(s), len(s)); handStop(b, 0) != len(b) {
				panic("a text that needs escapes")
			}
			dst = append(dst, '"')
			dst = append(dst, s...)
			dst = append(dst, '"')
		}
	}
	return append(dst, '}')
}

const handDigits = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

func handPut(o []byte, at int, v int64) { o[at], o[at+1] = handDigits[v*2], handDigits[v*2+1] }

func handAppendTime(dst []byte, us int64) []byte {
	days := types.FloorDiv(us, 86_400_000_000)
	rest := us/1000 - days*86_400_000
	// The civil date of a day, counted from 0000-03-01 in eras of 400 years.
	z := days + 719_468
	era := types.FloorDiv(z, 146_097)
	doe := z - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	y, m, d := yoe+era*400, mp+3, doy-(153*mp+2)/5+1
	if m > 12 {
		y, m = y+1, m-12
	}
	n := len(dst)
	dst = append(dst, "0000-00-00 00:00:00.000"...)
	o, sec := dst[n:n+23], rest/1000
	handPut(o, 0, y/100)
	handPut(o, 2, y%100)
	handPut(o, 5, m)
	handPut(o, 8, d)
	handPut(o, 11, sec/3600)
	handPut(o, 14, sec/60%60)
	handPut(o, 17, sec%60)
	handPut(o, 20, rest%1000/10)
	o[22] = '0' + byte(rest%10)
	return dst
}

// share is one comparison: nanoseconds of processor a row, least of the rounds.
type share struct {
	what       string
	json, hand float64
}

// turns runs both sides in turn and keeps the least of each; the rows are read or written count times a turn.
func turns(what string, rounds, count, rows int, json, hand func()) share {
	s := share{what: what}
	one := func(f func(), least *float64) {
		from := cpu()
		for range count {
			f()
		}
		if ns := float64(cpu()-from) / float64(count) / float64(rows); *least == 0 || ns < *least {
			*least = ns
		}
	}
	for range rounds {
		one(json, &s.json)
		one(hand, &s.hand)
	}
	return s
}

// TestShareOfLimit checks that both sides read and write the same. With STREAMSQL_BENCH, a folder, it measures and writes json.md there.
func TestShareOfLimit(t *testing.T) {
	rounds, count := 1, 1
	dir := os.Getenv("STREAMSQL_BENCH")
	if dir != "" {
		rounds, count = 60, 40
	}
	msgs := bids(t, batch.Size, false)
	size := 0
	for _, m := range msgs {
		size += len(m)
	}
	var shares []share
	for _, c := range []struct {
		what string
		want []int
	}{{"decode, all members", allBids}, {"decode, three of seven", threeInts}} {
		d, out := bidDecoder(t, "json", c.want)
		row := func(int, types.RowKind) { out.RowDone() }
		h := newHand(len(msgs), len(c.want) == len(allBids))
		shares = append(shares, turns(c.what, rounds, count, len(msgs), func() {
			out.Reset()
			if _, err := d.Decode(msgs, out, row); err != nil {
				t.Fatal(err)
			}
		}, func() {
			for i := range h.fields {
				clear(h.fields[i].valid)
			}
			for r, m := range msgs {
				if !h.read(m, r) {
					t.Fatalf("not read by hand: %s", m)
				}
			}
		}))
		same(t, out.Finish(), h, c.want)
	}
	shares = append(shares, encodeShare(t, msgs, rounds, count))
	text := fmt.Sprintf("Bids of %d bytes; processor time, least of %d rounds in turn.\n\n| what | json, ns/row | by hand, ns/row | share of the limit (aim: 80 %%) |\n|---|---|---|---|\n", size/len(msgs), rounds)
	for _, s := range shares {
		text += fmt.Sprintf("| %s | %.0f | %.0f | %.0f %% |\n", s.what, s.json, s.hand, 100*s.hand/s.json)
	}
	if dir == "" {
		return
	}
	t.Logf("\n%s", text)
	if err := os.WriteFile(filepath.Join(dir, "json.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// same compares the columns of a batch with those read by hand.
func same(t *testing.T, b *batch.Batch, h *hand, want []int) {
	t.Helper()
	for col, i := range want {
		f, v := &h.fields[i], b.Cols[col]
		for r := range b.N {
			if f.kind == handText && f.text[r] != v.Str[r] || f.kind != handText && f.ints[r] != v.I64[r] {
				t.Fatalf("row %d, column %s: json and the code by hand read different values", r, bidSchema.Columns[i].Name)
			}
		}
	}
}

func encodeShare(t *testing.T, msgs [][]byte, rounds, count int) share {
	t.Helper()
	d, out := bidDecoder(t, "json", allBids)
	if _, err := d.Decode(msgs, out, func(int, types.RowKind) { out.RowDone() }); err != nil {
		t.Fatal(err)
	}
	rows := out.Finish()
	h := newHand(len(msgs), true)
	for r, m := range msgs {
		if !h.read(m, r) {
			t.Fatalf("not read by hand: %s", m)
		}
	}
	e := encoder(t, "json", bidSchema)
	var m Messages
	var buf []byte
	ends := make([]int, len(msgs))
	s := turns("encode", rounds, count, len(msgs), func() {
		m.Reset()
		if err := e.Encode(rows, &m); err != nil {
			t.Fatal(err)
		}
	}, func() {
		buf = buf[:0]
		for r := range msgs {
			buf = h.write(buf, r)
			ends[r] = len(buf)
		}
	})
	from := 0
	for r := range msgs {
		if got := buf[from:ends[r]]; string(got) != string(msgs[r]) {
			t.Fatalf("row %d: by hand %s, want %s", r, got, msgs[r])
		}
		from = ends[r]
	}
	// json leaves out zeros at the end of a fraction, so its texts are compared by what they say.
	written := make([][]byte, m.Len())
	for i := range written {
		written[i] = m.At(i)
	}
	d, out = bidDecoder(t, "json", allBids)
	if n, err := d.Decode(written, out, func(int, types.RowKind) { out.RowDone() }); err != nil || n != len(msgs) {
		t.Fatal(n, err)
	}
	same(t, out.Finish(), h, allBids)
	return s
}
