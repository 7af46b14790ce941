package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
)

const (
	orderEvents = 20 // events of a run
	orderBatch  = 5  // events per checkpoint
	orderCrash  = 7  // events written when the at-least-once job crashes
)

// crashOrder is one of the four places where a job can crash, and what the protocol promises for it.
type crashOrder struct {
	name, title string
	failpoint   string // where the first run crashes (checkpoint.FailpointEnv)
	want        int    // rows a read_committed consumer must see
	why         string
}

// crashOrders are the four. Checkpoint 2 covers events 6 to 10.
func crashOrders() []crashOrder {
	return []crashOrder{
		{"at-least-once", "at-least-once, crash at event 7", "demo.event7", 22, "6 and 7 were visible at once and come again from checkpoint 1"},
		{"before-commit", "2PC, crash before commit", "precommit.after:2", 20, "6..10 were not published: aborted, then written again"},
		{"after-commit", "2PC, crash after commit", "commit.after:2", 20, "6..10 are in checkpoint 2 and recognised as committed"},
		{"early-commit", "2PC, commit before the checkpoint", "precommit.after:2", 25, "a broken sink: 6..10 are committed, then written again"},
	}
}

// orderNames are the names of the four.
func orderNames() (out []string) {
	for _, o := range crashOrders() {
		out = append(out, o.name)
	}
	return out
}

// orders runs the crash orders that were asked for and prints what a read_committed consumer saw of each.
func (d *demo) orders(ctx context.Context) (exact bool, err error) {
	fmt.Fprintf(d.out, "\n%d events, a checkpoint after every %d, one crash: what an order of commit and checkpoint does\n\n", orderEvents, orderBatch)
	exact = true
	var table strings.Builder
	fmt.Fprintf(&table, "        %-36s %5s %7s %5s %5s\n", "", "rows", "expect", "dup", "lost")
	for _, o := range d.cases {
		values, err := d.order(ctx, o)
		if err != nil {
			return false, fmt.Errorf("%s: %w", o.title, err)
		}
		distinct := map[string]bool{}
		for _, v := range values {
			distinct[string(v)] = true
		}
		dup, lost := len(values)-len(distinct), orderEvents-len(distinct)
		fmt.Fprintf(&table, "        %-36s %5d %7d %5d %5d   %s\n", o.title, len(values), orderEvents, dup, lost, o.why)
		exact = exact && len(values) == o.want && lost == 0
	}
	fmt.Fprintf(d.out, "\n%s", table.String())
	if last := d.cases[len(d.cases)-1]; last.name == "early-commit" {
		fmt.Fprint(d.out, "\n        A transaction alone is not exactly-once: the last sink has one too, and commits it too early.\n")
	}
	return exact, nil
}

// order runs one job that crashes and starts it again, and returns the rows that a read_committed consumer sees.
func (d *demo) order(ctx context.Context, o crashOrder) ([][]byte, error) {
	if err := d.kafka.create(ctx, 1, orderTopic(o.name), orderTopic(o.name)+"_out"); err != nil {
		return nil, err
	}
	args := []string{"demo", orderCommand, o.name, "--embedded-kafka-addr", d.broker.Addr(), "--state-dir", filepath.Join(d.dir, o.name)}
	c, err := d.start(ctx, []string{checkpoint.FailpointEnv + "=" + o.failpoint}, args...)
	if err != nil {
		return nil, err
	}
	<-c.done
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !c.killed() {
		return nil, c.failure("the job should have crashed at " + o.failpoint)
	}
	loaded, err := d.kafka.end(ctx, orderTopic(o.name))
	if err != nil {
		return nil, err
	}
	d.say("%s: killed at %s with %d events loaded", o.title, o.failpoint, loaded)
	if c, err = d.start(ctx, []string{checkpoint.FailpointEnv + "="}, args...); err != nil {
		return nil, err
	}
	<-c.done
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if c.err != nil {
		return nil, c.failure("the job failed after its restart")
	}
	return d.kafka.read(ctx, orderTopic(o.name)+"_out", kgo.ReadCommitted())
}

func orderTopic(order string) string { return "events_" + strings.ReplaceAll(order, "-", "_") }
