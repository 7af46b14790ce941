package flink

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// stuck bounds a script: a loaded machine is slow, a hang is for ever.
const stuck = 5 * time.Minute

var (
	headerLine = regexp.MustCompile(`(?m)^-- (mode|compare|timeout|differs|digest): *(.*)$`)
	insertInto = regexp.MustCompile("(?i)INSERT\\s+INTO\\s+`?(\\w+)`?")
)

// header are the options at the top of a script.
func header(text string) map[string]string {
	out := map[string]string{}
	for _, m := range headerLine.FindAllStringSubmatch(text, -1) {
		out[m[1]] = strings.TrimSpace(m[2])
	}
	return out
}

// session is an engine with the settings that every script starts from on both sides.
func session(bus *memory.Bus, settings map[string]string, wrap func(connectors.Connector) connectors.Connector) (*streamsql.Engine, error) {
	o := &streamsql.Options{
		Connectors: []connectors.Connector{*bus.Connector()},
		Settings: map[string]string{"parallelism.default": "1", "table.local-time-zone": "UTC", "pipeline.auto-watermark-interval": "0 ms",
			"restart-strategy.type": "none"},
	}
	for k, v := range settings {
		o.Settings[k] = v
	}
	for _, c := range streamsql.DefaultConnectors(io.Discard) {
		o.Connectors = append(o.Connectors, wrap(c))
	}
	return streamsql.Open("", o)
}

// answer is what this engine says to a script, in the format of a golden file without its first line. err is its last error.
func answer(text string) (out string, err error) {
	return answerWithin(stuck, text, single)
}

// answerWithin is answer with a time limit and what is made of each connector.
func answerWithin(limit time.Duration, text string, wrap func(connectors.Connector) connectors.Connector) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	head := header(text)
	settings := map[string]string{}
	if head["mode"] == "batch" {
		settings["execution.runtime-mode"] = "batch"
	}
	bus := memory.NewBus()
	eng, err := session(bus, settings, wrap)
	if err != nil {
		return "", err
	}
	defer eng.Close()
	a := &answering{ctx: ctx, eng: eng, bus: bus, changelog: head["compare"] != "", digest: head["digest"] != "", sinks: map[string]*table{}}
	err = a.script(text)
	if err != nil {
		a.out.WriteString("error: " + err.Error() + "\n")
	}
	return a.out.String(), err
}

type answering struct {
	ctx       context.Context
	eng       *streamsql.Engine
	bus       *memory.Bus
	changelog bool
	digest    bool
	out       strings.Builder
	sinks     map[string]*table
}

func (a *answering) script(text string) error {
	s := a.eng.Script(text)
	for {
		res, err := s.Next(a.ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case res.IsQuery():
			err = a.query(res)
		case res.Schema != nil:
			err = a.fixed(res)
		case res.Job != nil:
			err = a.insert(res)
		}
		if err != nil {
			return err
		}
	}
}

func (a *answering) query(res *streamsql.Result) error {
	if !res.Bounded {
		res.Job.Cancel()
		return errors.New("the query does not end")
	}
	var cols []string
	for _, c := range res.Schema.Columns {
		cols = append(cols, c.Name+" "+c.Type.String())
	}
	t := &table{}
	for c, err := range res.Rows() {
		if err != nil {
			return err
		}
		cells := make([]string, c.Len())
		for i := range cells {
			cells[i] = value(c.Datum(i), res.Schema.Columns[i].Type)
		}
		t.add(c.Kind, cells)
	}
	a.out.WriteString("schema: " + strings.Join(cols, ", ") + "\n")
	t.print(&a.out, a.changelog)
	return nil
}

func (a *answering) fixed(res *streamsql.Result) error {
	for c, err := range res.Rows() {
		if err != nil {
			return err
		}
		var cells []string
		for i := range c.Len() {
			v, _ := c.Text(i)
			cells = append(cells, v)
		}
		a.out.WriteString(strings.Join(cells, " | ") + "\n")
	}
	return nil
}

func (a *answering) insert(res *streamsql.Result) error {
	if !res.Job.Bounded() {
		res.Job.Cancel()
		return errors.New("the job does not end")
	}
	if err := res.Job.Wait(a.ctx); err != nil {
		return err
	}
	for _, m := range insertInto.FindAllStringSubmatch(res.Statement, -1) {
		if err := a.take(m[1]); err != nil {
			return err
		}
	}
	for _, name := range sorted(a.sinks) {
		a.out.WriteString("table " + name + ":\n")
		a.sinks[name].digest = a.digest
		a.sinks[name].print(&a.out, a.changelog)
		a.sinks[name].lines = nil
	}
	return nil
}

// take adds what a memory table was sent since the last look.
func (a *answering) take(name string) error {
	t := a.sinks[name]
	if t == nil {
		desc, err := a.eng.Exec(a.ctx, "SHOW CREATE TABLE "+name)
		if err != nil {
			return err
		}
		for c := range desc.Rows() {
			text, _ := c.Text(0)
			if !strings.Contains(text, "'connector' = 'memory'") {
				return nil
			}
			t = &table{upsert: strings.Contains(text, "'changelog' = 'upsert'")}
		}
		if err := a.describe(name, t); err != nil {
			return err
		}
		a.sinks[name] = t
	}
	rows := a.bus.Queue(name).Rows()
	for _, row := range rows[t.seen:] {
		cells := make([]string, len(row.Values))
		for i, d := range row.Values {
			cells[i] = value(d, t.types[i])
		}
		t.add(row.Kind, cells)
	}
	t.seen = len(rows)
	return nil
}

// describe finds the physical columns of a table and its primary key.
func (a *answering) describe(name string, t *table) error {
	res, err := a.eng.Exec(a.ctx, "DESCRIBE "+name)
	if err != nil {
		return err
	}
	var nulls []string // the types by way of the language, which reads them
	for c, err := range res.Rows() {
		if err != nil {
			return err
		}
		cell := func(k int) string { s, _ := c.Text(k); return s }
		if strings.HasPrefix(cell(4), "AS ") {
			continue
		}
		if t.upsert && strings.HasPrefix(cell(3), "PRI(") {
			t.key = append(t.key, len(nulls))
		}
		nulls = append(nulls, "CAST(NULL AS "+strings.TrimSuffix(strings.TrimSuffix(cell(1), " *ROWTIME*"), " NOT NULL")+")")
	}
	row, err := a.eng.Exec(a.ctx, "SELECT "+strings.Join(nulls, ", "))
	if err != nil {
		return err
	}
	for range row.Rows() {
	}
	for _, c := range row.Schema.Columns {
		t.types = append(t.types, c.Type)
	}
	return nil
}

// table is the changes of a result, and the rows they leave.
type table struct {
	types  []types.Type
	upsert bool
	digest bool // print the size, a hash and the first rows
	key    []int
	seen   int
	lines  []string
	count  map[string]int
	byKey  map[string]string
}

func (t *table) add(k types.RowKind, cells []string) {
	row := "(" + strings.Join(cells, ", ") + ")"
	t.lines = append(t.lines, k.String()+row)
	acc := k == types.Insert || k == types.UpdateAfter
	if t.count == nil {
		t.count, t.byKey = map[string]int{}, map[string]string{}
	}
	switch {
	case t.upsert:
		var key []string
		for _, i := range t.key {
			key = append(key, cells[i])
		}
		if acc {
			t.byKey[strings.Join(key, ", ")] = row
		} else {
			delete(t.byKey, strings.Join(key, ", "))
		}
	case acc:
		t.count[row]++
	default:
		t.count[row]--
	}
}

func (t *table) print(out *strings.Builder, changelog bool) {
	lines := t.lines
	if !changelog {
		lines = nil
		for _, row := range t.byKey {
			lines = append(lines, row)
		}
		for row, n := range t.count {
			for range n {
				lines = append(lines, row)
			}
			for range -n {
				lines = append(lines, "missing: "+row)
			}
		}
		slices.Sort(lines)
	}
	if t.digest {
		h := sha256.New()
		for _, l := range lines {
			io.WriteString(h, l+"\n")
		}
		fmt.Fprintf(out, "rows: %d\nsha256: %x\n", len(lines), h.Sum(nil))
		lines = lines[:min(5, len(lines))]
	}
	for _, l := range lines {
		out.WriteString(l + "\n")
	}
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// refused says that an error is a refusal of something that is not built.
func refused(err error) bool { return diag.CodeOf(err) == diag.Unsupported }
