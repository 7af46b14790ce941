package print

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

var options = []connectors.Option{
	{Key: "print-identifier", Flink: true, Doc: "text before every line"},
	{Key: "standard-error", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "print to standard error instead of standard output"},
	{Key: "sink.parallelism", Type: connectors.IntOption, Flink: true, Doc: "number of subtasks that print"},
	connectors.PropertyVersion,
}

// Connector is 'print'. Lines go to out, those of tables with 'standard-error' to this process's standard error; both
// are written one whole batch at a time, whatever the number of jobs and subtasks.
func Connector(out io.Writer) connectors.Connector {
	stdout, stderr := &locked{w: out}, &locked{w: os.Stderr}
	return connectors.Connector{
		Name:    "print",
		Doc:     "writes rows with their kind as lines of text",
		Options: options,
		Check: func(t *catalog.Table, _ connectors.Use) error {
			_, err := parse(t)
			return err
		},
		SinkModes: func(*catalog.Table) ([]connectors.SinkMode, error) {
			return []connectors.SinkMode{{Delivery: connectors.AtLeastOnce, Changelog: types.Retract, Reason: "lines are printed as rows arrive",
				Weakness: "after a restart, rows since the last checkpoint are printed again"}}, nil
		},
		NewSink: func(_ context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
			v, err := parse(spec.Table)
			if err != nil {
				return nil, err
			}
			s := &sink{spec: spec, id: v.String("print-identifier"), out: stdout}
			if v.Bool("standard-error") {
				s.out = stderr
			}
			return s, nil
		},
	}
}

func parse(t *catalog.Table) (*connectors.Values, error) {
	v, err := connectors.Parse(t, options, nil)
	if err != nil {
		return nil, err
	}
	if v.Has("sink.parallelism") && v.Int("sink.parallelism") < 1 {
		return nil, v.Errorf("sink.parallelism", "%d is not positive", v.Int("sink.parallelism"))
	}
	if len(t.Partitions) > 0 {
		return nil, diag.New(diag.Unsupported, v.Pos("print-identifier"), "table %s: PARTITIONED BY is not supported by connector 'print'", t.Name).
			WithHint("remove PARTITIONED BY: printed lines hold all columns anyway")
	}
	return v, nil
}

// locked is a writer that several subtasks share.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(b)
	return err
}

type sink struct {
	spec connectors.SinkSpec
	id   string
	out  *locked
}

// Preflight implements connectors.Sink.
func (s *sink) Preflight(context.Context) error { return nil }

// Committer implements connectors.Sink: print has no transactions.
func (s *sink) Committer(context.Context) (checkpoint.Committer, error) { return nil, nil }

// Open implements connectors.Sink.
func (s *sink) Open(_ context.Context, subtask int) (connectors.Writer, error) {
	prefix := s.id
	if s.spec.Parallel > 1 {
		if prefix != "" {
			prefix += ":"
		}
		prefix += strconv.Itoa(subtask + 1)
	}
	if prefix != "" {
		prefix += "> "
	}
	return &writer{prefix: prefix, s: s}, nil
}

// Close implements connectors.Sink.
func (s *sink) Close() error { return nil }

type writer struct {
	s      *sink
	prefix string
	buf    []byte
}

// Write implements connectors.Writer: it prints the batch at once.
func (w *writer) Write(_ context.Context, b *batch.Batch) error {
	w.buf = w.buf[:0]
	for i := range b.Len() {
		r := b.Row(i)
		w.buf = append(w.buf, w.prefix...)
		w.buf = append(w.buf, b.Kind(r).String()...)
		w.buf = append(w.buf, '[')
		for j, c := range b.Cols {
			if j > 0 {
				w.buf = append(w.buf, ", "...)
			}
			w.buf = appendColumn(w.buf, c, r)
		}
		w.buf = append(w.buf, "]\n"...)
	}
	if err := w.s.out.write(w.buf); err != nil {
		return w.s.failed(err)
	}
	return nil
}

// failed is the error of printing. A file that this process was given to print to, such as standard output, is not opened
// anew by a restart of the job; a program's own writer may well take the rows the next time.
func (s *sink) failed(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return diag.New(diag.Output, diag.Pos{}, "table %s: rows cannot be printed", s.spec.Table.Name).Wrap(err).
			WithHint("let the output go where there is room for it; the next start prints what came after the last checkpoint again")
	}
	return diag.New(diag.External, diag.Pos{}, "table %s: printing a row", s.spec.Table.Name).Wrap(err)
}

// PreCommit implements connectors.Writer: everything is printed already.
func (w *writer) PreCommit(context.Context, checkpoint.ID) ([]checkpoint.Committable, error) {
	return nil, nil
}

// Committed implements connectors.Writer.
func (w *writer) Committed(context.Context, checkpoint.ID) error { return nil }

// Close implements connectors.Writer.
func (w *writer) Close() error { return nil }
