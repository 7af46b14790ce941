package format

import (
	"fmt"
	"math/rand"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var bidSchema = cols("auction", i64, "bidder", i64, "price", i64, "channel", str, "url", str, "dateTime", ts3, "extra", str)

// bids are n flat Nexmark bids of about 256 bytes, as JSON or as csv. STREAMSQL_BIDS names a file of JSON lines to use
// instead.
func bids(tb testing.TB, n int, csv bool) [][]byte {
	if name := os.Getenv("STREAMSQL_BIDS"); name != "" && !csv {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		var out [][]byte
		for line := range strings.Lines(string(data)) {
			out = append(out, []byte(strings.TrimSuffix(line, "\n")))
		}
		return out
	}
	r := rand.New(rand.NewSource(1))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + r.Intn(26))
		}
		return string(b)
	}
	layout := `{"auction":%d,"bidder":%d,"price":%d,"channel":"%s","url":"https://www.nexmark.com/%s/item.htm?query=1","dateTime":"%s","extra":"%s"}`
	if csv {
		layout = `%d,%d,%d,%s,https://www.nexmark.com/%s/item.htm?query=1,%s,%s`
	}
	var out [][]byte
	for i := range n {
		ts := fmt.Sprintf("2024-01-02 03:%02d:%02d.%03d", i/60%60, i%60, i%1000)
		out = append(out, fmt.Appendf(nil, layout, 1000+r.Intn(1e6), 1000+r.Intn(1e6), 1+r.Intn(1e8), word(6+r.Intn(4)), word(15), ts, word(30+r.Intn(40))))
	}
	return out
}

// cpu is the process's CPU time in nanoseconds: other processes must not count.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func perRow(b *testing.B, start int64, rows int) {
	b.ReportMetric(float64(cpu()-start)/float64(b.N)/float64(rows), "cpu-ns/row")
}

var (
	allBids   = []int{0, 1, 2, 3, 4, 5, 6}
	threeInts = []int{0, 2, 5}
)

// bidDecoder reads the wanted members of bids.
func bidDecoder(tb testing.TB, name string, want []int) (Decoder, *batch.Builder) {
	f := format(tb, name)
	spec := DecodeSpec{Schema: bidSchema, Options: mustOptions(tb, f), Table: "t"}
	out := &types.Schema{}
	for i, c := range want {
		spec.Targets = append(spec.Targets, Target{Field: c, Col: i})
		out.Columns = append(out.Columns, bidSchema.Columns[c])
	}
	d, err := f.NewDecoder(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return d, batch.NewBuilder(out)
}

func benchDecode(b *testing.B, name string, msgs [][]byte, want []int) {
	d, bb := bidDecoder(b, name, want)
	row := func(int, types.RowKind) { bb.RowDone() }
	size := 0
	for _, m := range msgs {
		size += len(m)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	start := cpu()
	for b.Loop() {
		bb.Reset()
		if _, err := d.Decode(msgs, bb, row); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, start, len(msgs))
}

func BenchmarkDecode(b *testing.B) {
	b.Run("json/all", func(b *testing.B) { benchDecode(b, "json", bids(b, batch.Size, false), allBids) })
	b.Run("json/3ints", func(b *testing.B) { benchDecode(b, "json", bids(b, batch.Size, false), threeInts) })
	b.Run("csv/all", func(b *testing.B) { benchDecode(b, "csv", bids(b, batch.Size, true), allBids) })
}

func BenchmarkEncode(b *testing.B) {
	d, out := decoder(b, "json", bidSchema, nil)
	msgs := bids(b, batch.Size, false)
	if _, err := d.Decode(msgs, out, func(int, types.RowKind) { out.RowDone() }); err != nil {
		b.Fatal(err)
	}
	rows := out.Finish()
	for _, name := range []string{"json", "csv", "debezium-json"} {
		b.Run(name, func(b *testing.B) {
			e := encoder(b, name, bidSchema)
			var m Messages
			b.ReportAllocs()
			start := cpu()
			for b.Loop() {
				m.Reset()
				if err := e.Encode(rows, &m); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(m.Buf)))
			perRow(b, start, rows.N)
		})
	}
}

// Neither decoding nor encoding of the usual types may allocate once buffers have grown.
func TestNoAllocations(t *testing.T) {
	schema := cols("id", i64, "name", str, "p", types.DecimalOf(10, 2), "d", dbl, "ok", types.BoolType, "ts", ts3, "day", types.DateType)
	for _, c := range []struct{ format, msg string }{
		{"json", `{"id":17,"name":"plain","p":12.50,"d":1.25,"ok":true,"ts":"2024-01-02 03:04:05.678","day":"2024-01-02"}`},
		{"csv", `17,plain,12.50,1.25,true,2024-01-02 03:04:05.678,2024-01-02`},
		{"changelog-json", `{"data":{"id":17,"name":"plain","p":12.50,"d":1.25,"ok":true,"ts":"2024-01-02 03:04:05.678","day":"2024-01-02"},"op":"+I"}`},
	} {
		d, out := decoder(t, c.format, schema, nil)
		msgs := make([][]byte, 100)
		for i := range msgs {
			msgs[i] = []byte(c.msg)
		}
		row := func(int, types.RowKind) { out.RowDone() }
		var m Messages
		e := encoder(t, c.format, schema)
		run := func() {
			out.Reset()
			if n, err := d.Decode(msgs, out, row); err != nil || n != 100 || out.Len() != 100 {
				t.Fatal(n, err)
			}
			m.Reset()
			if err := e.Encode(out.Finish(), &m); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if per := testing.AllocsPerRun(20, run) / 100; per > 0.02 {
			t.Errorf("%s: %.3f allocations per row", c.format, per)
		}
	}
}
