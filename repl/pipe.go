package repl

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/streamsql/streamsql"
)

// RunPipe runs what comes from in as a script, each statement as soon as it is complete. Lines that are commands of the
// shell (\d, .mode …) are carried out between statements, with remarks to errs. At the end, and only then, it waits for
// the jobs that have no end. On an error it returns the text that the error's place refers to.
func RunPipe(ctx context.Context, r *Runner, errs io.Writer, in io.Reader) (text string, err error) {
	sh := &Shell{Engine: r.Engine, Printer: r.Printer, Out: r.Printer.Out, Err: errs}
	next := readLines(in)
	pending, skipped, n := "", 0, 0
	for {
		var line string
		var more bool
		select {
		case line, more = <-next.lines:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if !more {
			break
		}
		n++
		if strings.TrimSpace(pending) == "" {
			if name, args, ok := parseCommand(line); ok {
				if quit, err := sh.piped(ctx, name, args); quit || err != nil {
					return "", firstOf(err, r.Finish(ctx))
				}
				pending, skipped = "", n
				continue
			}
		}
		pending += line + "\n"
		if streamsql.Complete(pending) {
			// The blank lines make positions those of the whole input.
			text = strings.Repeat("\n", skipped) + pending
			if err := r.Step(ctx, text); err != nil {
				return text, err
			}
			pending, skipped = "", n
		}
	}
	if next.err != nil {
		return "", next.err
	}
	text = strings.Repeat("\n", skipped) + pending
	if err := r.Step(ctx, text); err != nil {
		return text, err
	}
	return "", r.Finish(ctx)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// piped carries out a command of a script.
func (s *Shell) piped(ctx context.Context, name string, args []string) (quit bool, err error) {
	c, err := lookup(name, args)
	if err != nil {
		return false, err
	}
	err = c.run(s, ctx, strings.ToLower(name), args)
	if err == errQuit {
		return true, nil
	}
	return false, err
}

// lineReader is a reader's lines as a channel, so that waiting for one can be given up.
type lineReader struct {
	lines chan string
	err   error // valid when lines is closed
}

// readLines reads until the end. Its goroutine lives as long as a read of in blocks: that of a process whose input
// stays open.
func readLines(in io.Reader) *lineReader {
	l := &lineReader{lines: make(chan string)}
	go func() {
		defer close(l.lines)
		b := bufio.NewReader(in)
		for {
			line, err := b.ReadString('\n')
			if line != "" {
				l.lines <- strings.TrimRight(line, "\r\n")
			}
			if err != nil {
				if err != io.EOF {
					l.err = err
				}
				return
			}
		}
	}()
	return l
}
