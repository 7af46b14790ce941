package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/streamsql/streamsql/connectors/kafka/embedded"
)

// demo is one run of "streamsql demo": this process holds the broker, children run the jobs and are killed.
type demo struct {
	out     io.Writer
	dir     string // temporary: topics, state directories, job files
	broker  *embedded.Broker
	kafka   *observer
	started time.Time
	verbose io.Writer // where children's logs go; nil = kept for error messages only
	// settings are the user's -D flags, for the earthquakes' job.
	settings []string
	children sync.WaitGroup
	rate     int          // of earthquakes, 0 = they are not shown
	cases    []crashOrder // of the orders
}

// demoParts are what the arguments name: the earthquakes, cases of the orders; all of it when there are none.
func demoParts(args []string) (quakes bool, cases []crashOrder, err error) {
	all := crashOrders()
	if len(args) == 0 {
		return true, all, nil
	}
	for _, a := range args {
		i := slices.IndexFunc(all, func(o crashOrder) bool { return o.name == a })
		switch {
		case a == "earthquakes":
			quakes = true
		case a == "orders":
			cases = all
		case i >= 0 && !slices.ContainsFunc(cases, func(o crashOrder) bool { return o.name == a }):
			cases = append(cases, all[i])
		case i < 0:
			return false, nil, fmt.Errorf("%q is not shown: use earthquakes, orders, or of these %s", a, strings.Join(orderNames(), ", "))
		}
	}
	return quakes, cases, nil
}

func runDemo(args []string, out, errs io.Writer) int {
	if len(args) > 0 && args[0] == orderCommand {
		return runOrder(args[1:], out, errs)
	}
	f := newFlags("demo", "[earthquakes|orders|CASE…]", `Shows exactly-once on this machine, with nothing else installed. It loads a week of earthquakes (USGS, public domain) into a
Kafka broker inside this process, runs a windowed aggregate over them in a child process, kills that process twice with
SIGKILL, and compares what a read_committed consumer saw with the expected result. Then it runs four small jobs that
crash at the four interesting places of the protocol and counts their rows. It takes a quarter of a minute; the exit code is
1 when a result is not as it must be. -D changes settings of the earthquakes' job that it does not set itself.
With "earthquakes" or "orders" it shows that part alone; with names of cases those of the orders: `+strings.Join(orderNames(), ", ")+`.`, errs)
	f.examples = `  streamsql demo
  streamsql demo orders
  streamsql demo before-commit after-commit
`
	f.settingFlags()
	keep := f.set.Bool("keep", false, "keep the broker's and the jobs' files and say where they are")
	rate := f.set.Int("rate", 150, "earthquakes loaded per second, at most 500")
	logs := f.set.Bool("logs", false, "show the logs of the child processes on stderr")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if *rate < 1 || *rate > 500 {
		fmt.Fprintln(errs, "streamsql demo: the rate is from 1 to 500\n  hint: streamsql demo --help")
		return exitUsage
	}
	quakes, cases, err := demoParts(pos)
	if err == nil && !quakes {
		err = f.only("demo without earthquakes", "keep", "logs")
	}
	if err != nil {
		return f.usage(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{out: out, started: time.Now(), cases: cases}
	if quakes {
		d.rate = *rate
	}
	for _, k := range slices.Sorted(maps.Keys(f.settings)) {
		d.settings = append(d.settings, "-D", k+"="+f.settings[k])
	}
	if *logs {
		d.verbose = errs
	}
	exact, err := d.run(ctx, *keep)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(errs, "interrupted")
		return exitFailed
	case err != nil:
		fmt.Fprintf(errs, "streamsql demo: %v\n", err)
		return exitFailed
	case !exact:
		fmt.Fprintln(errs, "streamsql demo: the result is not exact")
		return exitFailed
	}
	return exitOK
}

// run is the demo from start to end. It leaves nothing behind unless keep is set.
func (d *demo) run(ctx context.Context, keep bool) (exact bool, err error) {
	if d.dir, err = os.MkdirTemp("", "streamsql-demo-"); err != nil {
		return false, err
	}
	defer func() {
		if keep {
			d.say("kept: %s", d.dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(d.dir))
	}()
	if d.broker, err = embedded.Start(embedded.Options{Dir: filepath.Join(d.dir, "kafka")}); err != nil {
		return false, err
	}
	defer d.broker.Close()
	// Whatever happens, no child outlives the demo or writes into files that are being removed.
	ctx, cancel := context.WithCancel(ctx)
	defer d.children.Wait()
	defer cancel()
	if d.kafka, err = newObserver(d.broker.Addr()); err != nil {
		return false, err
	}
	defer d.kafka.close()
	d.say("a Kafka broker runs inside this process (pid %d) at %s", os.Getpid(), d.broker.Addr())
	exact = true
	if d.rate > 0 {
		if exact, err = d.earthquakes(ctx, d.rate); err != nil {
			return false, err
		}
	}
	if len(d.cases) > 0 {
		orders, err := d.orders(ctx)
		if err != nil {
			return false, err
		}
		exact = exact && orders
	}
	fmt.Fprintln(d.out)
	d.say("done")
	return exact, nil
}

// say prints a progress line with the time since the demo began.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%5.1fs  %s\n", time.Since(d.started).Seconds(), fmt.Sprintf(format, args...))
}

// child is a process of this program that runs a job.
type child struct {
	cmd  *exec.Cmd
	logs *tail
	done chan struct{} // closed when it has ended
	err  error         // how; valid after done
}

// start starts this program again with other arguments. The child is killed when ctx ends.
func (d *demo) start(ctx context.Context, env []string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, args...), logs: &tail{also: d.verbose}, done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = c.logs, c.logs
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	d.children.Go(func() {
		c.err = c.cmd.Wait()
		close(c.done)
	})
	return c, nil
}

// kill ends the child with SIGKILL: nothing of it runs any more, no connection is closed in order.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended just now
	<-c.done
}

// killed reports that the child ended by SIGKILL.
func (c *child) killed() bool {
	ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// failure is why the child ended, with the end of what it wrote.
func (c *child) failure(what string) error {
	return fmt.Errorf("%s: %s; it wrote:\n%s", what, c.cmd.ProcessState, c.logs)
}

// tail keeps the end of what is written to it. exec.Cmd writes from one goroutine; reading starts after Wait.
type tail struct {
	also io.Writer
	kept []byte
}

const tailSize = 4096

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	if t.also != nil {
		_, _ = t.also.Write(p) // a terminal that is gone stops nothing
	}
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - tailSize; n > 0 {
		t.kept = t.kept[n:]
	}
	return len(p), nil
}

// String is the text kept.
func (t *tail) String() string { return string(t.kept) }
