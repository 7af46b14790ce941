package planner

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The floors of TestConformance: how many cases have to give Flink's value, and Flink's value and type. They only go up.
const (
	conformanceValues = 1378
	conformanceTypes  = 1376
)

// conformanceCase is one line of functions.jsonl: a query and the answer Flink gives.
type conformanceCase struct {
	ID       string            `json:"id"`
	SQL      string            `json:"sql"`
	Expected any               `json:"expected"`
	Type     any               `json:"type"`
	Config   map[string]string `json:"config"`
}

// TestConformance plans and runs scalar queries whose answers were recorded from Flink and counts agreement. What is
// refused by name counts as unsupported; a wrong value never raises the count and lowers it where it was right before.
// STREAMSQL_CONFORMANCE names the folder; STREAMSQL_CONFORMANCE_LOG=1 prints every disagreement.
func TestConformance(t *testing.T) {
	dir := os.Getenv("STREAMSQL_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "conformance")
	}
	f, err := os.Open(filepath.Join(dir, "functions.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recorded answers in %s: set STREAMSQL_CONFORMANCE to their folder", dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	counts, reasons := map[string]int{}, map[string]int{}
	for in.Scan() {
		d := json.NewDecoder(strings.NewReader(in.Text()))
		d.UseNumber()
		var c conformanceCase
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		verdict, why := judge(t, c, asWritten)
		for how := wideNull; how <= wideElems && verdict == "type"; how++ {
			if again, _ := judge(t, c, how); again == "ok" {
				verdict = again
			}
		}
		if other := conformanceOther[c.ID]; other != "" {
			if verdict == "ok" {
				t.Errorf("%s agrees with Flink after all: remove it from the list", c.ID)
			}
			counts["other"]++
			continue
		}
		counts[verdict]++
		if verdict != "ok" {
			reasons[verdict+": "+shorten(why)]++
			if os.Getenv("STREAMSQL_CONFORMANCE_LOG") != "" {
				t.Logf("%s %s: %s\n    %s", verdict, c.ID, why, c.SQL)
			}
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	values := counts["ok"] + counts["type"]
	t.Logf("right value and type %d, right value %d, wrong value %d, failed %d, unsupported %d, recorded otherwise %d",
		counts["ok"], values, counts["value"], counts["error"], counts["unsupported"], counts["other"])
	for _, r := range topReasons(reasons, 40) {
		t.Log(r)
	}
	if values < conformanceValues || counts["ok"] < conformanceTypes {
		t.Errorf("agreement fell below %d values, %d of them with the type", conformanceValues, conformanceTypes)
	}
}

func shorten(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 90 {
		s = s[:90]
	}
	return s
}

func topReasons(m map[string]int, n int) []string {
	var out []string
	for k, v := range m {
		out = append(out, fmt.Sprintf("%4d %s", v, k))
	}
	sort.Sort(sort.Reverse(sort.StringSlice(out)))
	return out[:min(n, len(out))]
}

// judge runs one case: ok, type (value right, type not), value, error or unsupported. how says how the
// inputs are typed.
func judge(t *testing.T, c conformanceCase, how inputTypes) (verdict, why string) {
	h := newHarness(t)
	for k, v := range c.Config {
		if _, err := h.conf.Set(k, v, posNone); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(err error) (string, string) {
		if diag.CodeOf(err) == diag.Unsupported {
			return "unsupported", err.Error()
		}
		return "error", err.Error()
	}
	stmts, err := sql.ParseScript(recordedSQL(c.SQL))
	if err != nil {
		return fail(err)
	}
	if how != asWritten && !widenInputs(h, stmts[0].Stmt, how) {
		return "type", "the inputs cannot be typed as recorded"
	}
	res := &collector{keep: true}
	plan, err := h.p.Plan(stmts[0].Stmt, h.conf, Options{Collect: res.connector()})
	if err != nil {
		return fail(err)
	}
	job, err := exec.NewJob(plan.Graph, exec.JobOptions{Name: plan.Name})
	if err != nil {
		return fail(err)
	}
	if err := job.Run(context.Background()); err != nil {
		return fail(err)
	}
	if len(res.data) != 1 {
		return "value", fmt.Sprintf("%d rows", len(res.data))
	}
	want, wantTypes := []any{c.Expected}, []any{c.Type}
	if list, ok := c.Type.([]any); ok {
		want, wantTypes = c.Expected.([]any), list
	}
	if len(want) != len(res.data[0]) {
		return "value", fmt.Sprintf("%d columns", len(res.data[0]))
	}
	for i, d := range res.data[0] {
		if !sameValue(want[i], d, plan.Schema.Columns[i].Type) {
			return "value", fmt.Sprintf("got %s, Flink gives %v", showDatum(d), want[i])
		}
	}
	for i, w := range wantTypes {
		// The recorded queries read their arguments from VALUES, where they are NOT NULL; the types were recorded over
		// nullable columns. So the outer nullability says nothing.
		got := plan.Schema.Columns[i].Type.WithNull(true).String()
		if want := strings.TrimSuffix(w.(string), " NOT NULL"); got != want {
			return "type", fmt.Sprintf("got %s, Flink gives %s", got, want)
		}
	}
	return "ok", ""
}

func showDatum(d types.Datum) string {
	if d.IsNull {
		return "NULL"
	}
	return fmt.Sprintf("%+v", d)
}

// sameValue compares a recorded value with ours of type t.
func sameValue(want any, d types.Datum, t types.Type) bool {
	if want == nil || d.IsNull {
		return want == nil && d.IsNull
	}
	switch w := want.(type) {
	case bool:
		return t.Kind == types.Boolean && d.Bool == w
	case string:
		return t.IsString() && d.Str == w
	case json.Number:
		if t.IsInteger() {
			return w.String() == strconv.FormatInt(d.I64, 10)
		}
		f, err := w.Float64()
		return err == nil && t.Phys() == types.PhysF64 && sameFloat(f, d.F64)
	case []any:
		return t.Kind == types.Array && sameList(w, d.List, func(int) types.Type { return *t.Elem })
	case map[string]any:
		for tag, v := range w {
			return sameTagged(tag, v, d, t)
		}
	}
	return false
}

func sameFloat(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func sameList(want []any, got []types.Datum, t func(i int) types.Type) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !sameValue(want[i], got[i], t(i)) {
			return false
		}
	}
	return true
}

func sameTagged(tag string, v any, d types.Datum, t types.Type) bool {
	switch tag {
	case "row":
		return t.Kind == types.Row && len(t.Fields) == len(d.List) && sameList(v.([]any), d.List, func(i int) types.Type { return t.Fields[i].Type })
	case "map":
		return sameMap(v.([]any), d, t)
	}
	text := fmt.Sprint(v)
	switch tag {
	case "bytes":
		return t.IsBytes() && hex.EncodeToString([]byte(d.Str)) == strings.ToLower(text)
	case "decimal":
		want, ok := new(big.Rat).SetString(text)
		return ok && t.Kind == types.Decimal && want.Cmp(decimalRat(d, t)) == 0
	case "float", "double":
		f, err := strconv.ParseFloat(strings.TrimPrefix(text, "+"), 64)
		if tag == "float" {
			f = float64(float32(f))
		}
		return err == nil && t.Phys() == types.PhysF64 && sameFloat(f, d.F64)
	case "date":
		want, err := time.Parse("2006-01-02", text)
		return err == nil && t.Kind == types.Date && want.Unix()/86400 == d.I64
	case "time":
		want, err := parseClock("1970-01-01T" + text)
		return err == nil && t.Kind == types.Time && want.UnixMilli() == d.I64
	case "timestamp", "instant":
		want, err := parseClock(strings.TrimSuffix(text, "Z"))
		return err == nil && t.IsTimestamp() && want.Equal(timestampOf(d, t))
	case "interval_ms", "interval_months":
		return t.IsInterval() && text == strconv.FormatInt(d.I64, 10)
	}
	return false
}

// sameMap compares maps without an order.
func sameMap(want []any, d types.Datum, t types.Type) bool {
	if t.Kind != types.Map || 2*len(want) != len(d.List) {
		return false
	}
	for _, kv := range want {
		pair, found := kv.([]any), false
		for i := 0; i < len(d.List); i += 2 {
			found = found || sameValue(pair[0], d.List[i], *t.Key) && sameValue(pair[1], d.List[i+1], *t.Elem)
		}
		if !found {
			return false
		}
	}
	return true
}

func decimalRat(d types.Datum, t types.Type) *big.Rat {
	n := big.NewInt(d.I64)
	if t.Phys() == types.PhysI128 {
		n = d.I128().Big()
	}
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil))
}

func timestampOf(d types.Datum, t types.Type) time.Time {
	if t.Phys() == types.PhysI128 {
		q, r := new(big.Int).DivMod(d.I128().Big(), big.NewInt(1e9), new(big.Int))
		return time.Unix(q.Int64(), r.Int64()).UTC()
	}
	return time.UnixMicro(d.I64).UTC()
}

// parseClock reads Java's text of a local date and time, which leaves zero seconds out.
func parseClock(s string) (time.Time, error) {
	if t, err := time.Parse("2006-01-02T15:04", s); err == nil {
		return t, nil
	}
	return time.Parse("2006-01-02T15:04:05.999999999", s)
}
