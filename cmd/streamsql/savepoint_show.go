package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
)

// show prints a savepoint, and what the INSERTs of files would go on with.
func (s *savepoints) show(args []string) error {
	path := args[0]
	if len(args) > 1 {
		return s.compare(path, args[1:])
	}
	c, err := checkpoint.ReadSavepoint(vfs.Default, path)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(s.out, c)
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s\n", path)
	if c.Job.Name != "" {
		fmt.Fprintf(&sb, "  job %s, %s\n", c.Job.Name, c.Job.ID)
	}
	if c.From != "" {
		fmt.Fprintf(&sb, "  taken from %s\n", c.From)
	}
	describe := describer(c.From)
	if c.From == "" {
		describe = describer(path)
	}
	showCheckpoint(&sb, c, c.ID, time.Now(), describe)
	for _, m := range checkpoint.Compare(c, c.Identities, c.Operators).Matches {
		fmt.Fprintf(&sb, "    %s", m.Operator)
		if m.Name != "" && m.Kind != checkpoint.KindSource && m.Kind != checkpoint.KindSink {
			fmt.Fprintf(&sb, " %s, %d bytes in files", m.Name, m.Bytes)
		}
		fmt.Fprintf(&sb, ", parallelism %d\n", c.Parallelism[m.Operator])
	}
	_, err = io.WriteString(s.out, sb.String())
	return err
}

// compare plans files and holds the savepoint against them.
func (s *savepoints) compare(path string, files []string) error {
	o := &streamsql.Options{Settings: s.settings}
	if s.embedded {
		o.EmbeddedAddr = "127.0.0.1:9092"
	}
	sources, err := s.sources(files)
	if err != nil {
		return err
	}
	eng, err := streamsql.Open("", o)
	if err != nil {
		return s.settingError(err)
	}
	defer eng.Close()
	var all []streamsql.JobComparison
	for _, src := range sources {
		found, err := eng.CompareState(src.text, path)
		if err != nil {
			s.src = src
			return err
		}
		all = append(all, found...)
	}
	if s.output == "json" {
		return printJSON(s.out, all)
	}
	_, err = io.WriteString(s.out, comparisons(path, all))
	return err
}

// comparisons is the report for people.
func comparisons(path string, all []streamsql.JobComparison) string {
	var sb strings.Builder
	for _, c := range all {
		r := c.Comparison
		fmt.Fprintf(&sb, "%s against checkpoint %d in %s\n", c.Name, r.ID, path)
		for _, m := range r.Matches {
			if len(m.Changes) == 0 {
				fmt.Fprintf(&sb, "  %-8s %s", m.Result, m.String())
			} else {
				fmt.Fprintf(&sb, "  %-8s %s", m.Result, m.Operator)
			}
			if m.Bytes > 0 {
				fmt.Fprintf(&sb, " (%d bytes)", m.Bytes)
			}
			sb.WriteString("\n")
			for _, c := range m.Changes {
				fmt.Fprintf(&sb, "             %s\n", c)
			}
		}
		switch err := r.Check(false); {
		case r.Exact():
			sb.WriteString("  the statement goes on with all of it\n")
		case err == nil:
			sb.WriteString("  nothing is lost\n")
		default:
			sb.WriteString("  refused without --allow-dropped-state\n")
		}
	}
	if len(all) == 0 {
		sb.WriteString("no INSERT to compare\n")
	}
	return sb.String()
}

// checkAll is the error of the first comparison that loses state.
func checkAll(all []streamsql.JobComparison, allowed bool) error {
	for _, c := range all {
		if err := c.Comparison.Check(allowed); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}
