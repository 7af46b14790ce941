package chaos

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/sql/diag"
)

// pin makes a source give the same bounded input in every run.
func (r *runner) pin(ctx context.Context, x *source) error {
	get := func(key string) string { v, _ := x.table.Options.Get(key); return v }
	switch c := x.table.Connector(); c {
	case "kafka", "upsert-kafka":
		return r.pinTopic(ctx, x)
	case "filesystem":
		x.what = "the files of " + get("path") + " as they are"
		if get("source.monitor-interval") != "" {
			x.edits = []edit{{"source.monitor-interval", ""}}
		}
	case "datagen":
		n := r.fewer(get("number-of-rows"))
		x.rows, x.what = n, fmt.Sprintf("at most %d generated rows", n)
		x.edits = []edit{{"number-of-rows", fmt.Sprint(n)}, {"rows-per-second", "1000000"}}
		if get("seed") == "" {
			x.edits = append(x.edits, edit{"seed", fmt.Sprint(r.o.Seed % (1 << 31))})
		}
		if get("scan.parallelism") == "" {
			x.edits = append(x.edits, edit{"scan.parallelism", "2"})
		}
	case "nexmark":
		n := r.fewer(get("events.num"))
		x.rows, x.what = n, fmt.Sprintf("%d generated events", n)
		x.edits = []edit{{"events.num", fmt.Sprint(n)}, {"rate.limited", "false"}, {"max-emit-speed", ""}}
		if get("scan.parallelism") == "" {
			x.edits = append(x.edits, edit{"scan.parallelism", "2"})
		}
	case "":
	default:
		return &inconclusive{fmt.Sprintf("table %s: what connector '%s' gives cannot be read again", x.table.Name, c), "read kafka, filesystem, datagen or nexmark"}
	}
	return nil
}

// fewer is the number an option gives, at most as many rows as asked for.
func (r *runner) fewer(option string) int64 {
	n, err := strconv.ParseInt(option, 10, 64)
	if err != nil || n <= 0 {
		return r.o.Rows
	}
	return min(n, r.o.Rows)
}

// pinTopic takes offsets of each partition: the first rows of a log that still has its beginning, else the last ones, which
// retention reaches last. The topic itself is read, so that offsets, timestamps and headers are those of the job; it is not
// written and no group commits offsets.
func (r *runner) pinTopic(ctx context.Context, x *source) error {
	t := x.table
	topic, ok := t.Options.Get("topic")
	if !ok || strings.Contains(topic, ";") {
		return diag.New(diag.Unsupported, t.Options.Pos("topic"), "table %s reads several topics, whose offsets cannot be pinned", t.Name).
			WithHint("name one topic for the check")
	}
	ext, err := kafka.Extents(ctx, t, r.o.Embedded, r.o.Log)
	if err != nil {
		return err
	}
	each := max(1, r.o.Rows/int64(max(1, len(ext))))
	var from, to []string
	whole := true
	for _, e := range ext {
		p, err := partitionOf(e.Split)
		if err != nil {
			return err
		}
		first, end := e.First, e.End
		switch {
		case end-first <= each:
		case first == 0 || t.Connector() == "upsert-kafka":
			end, whole = first+each, false
		default:
			first, whole = end-each, false
		}
		if first < end {
			to = append(to, fmt.Sprintf("partition:%d,offset:%d", p, end))
			x.rows += end - first
		}
		from = append(from, fmt.Sprintf("partition:%d,offset:%d", p, first))
	}
	if x.rows == 0 {
		return &inconclusive{fmt.Sprintf("table %s: topic %s holds no records", t.Name, topic), "check a job whose topics hold some input"}
	}
	x.what = fmt.Sprintf("topic %s, %d offsets of %d partitions", topic, x.rows, len(ext))
	if whole {
		x.what += ", all there is"
	}
	x.edits = []edit{
		{"scan.bounded.mode", "specific-offsets"}, {"scan.bounded.specific-offsets", strings.Join(to, ";")}, {"scan.bounded.timestamp-millis", ""},
		{"scan.topic-partition-discovery.interval", "0"}, {"properties.group.id", ""},
		// Rows between which a barrier can pass: a fetch of thousands would be one step otherwise.
		{"properties.max.poll.records", fmt.Sprint(min(max(x.rows/200, 5), 500))},
	}
	if t.Connector() == "kafka" {
		x.edits = append(x.edits, edit{"scan.startup.mode", "specific-offsets"}, edit{"scan.startup.specific-offsets", strings.Join(from, ";")}, edit{"scan.startup.timestamp-millis", ""})
	}
	if dead, ok := t.Options.Get("scan.dead-letter.topic"); ok {
		x.edits = append(x.edits, edit{"scan.dead-letter.topic", dead + suffix + r.o.ID})
	}
	return nil
}

// partitionOf is the number of a Kafka split, which ends with it.
func partitionOf(s checkpoint.Split) (int, error) {
	text := string(s)
	return strconv.Atoi(text[strings.LastIndexByte(text, '-')+1:])
}
