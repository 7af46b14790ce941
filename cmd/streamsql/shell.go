package main

import (
	"fmt"
	"io"
)

// runShell is the command without a verb: -e and -f run statements and files, otherwise the shell starts.
func runShell(args []string, out, errs io.Writer) int {
	f := newFlags("", "", "Without -e and -f: the interactive shell.", errs)
	f.engineFlags()
	f.outputFlags()
	f.set.Var(&f.statements, "e", "`SQL` to run; may be repeated")
	f.set.Var(&f.files, "f", "`file` to run; may be repeated")
	f.set.StringVar(&f.initFile, "i", "", "`file` of definitions and settings to run first")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) > 0 {
		fmt.Fprintf(errs, "streamsql: unexpected argument %q\n  hint: streamsql --help\n", pos[0])
		return exitUsage
	}
	if len(f.files)+len(f.statements) > 0 {
		return f.runTexts(f.files, out, errs)
	}
	fmt.Fprintln(errs, "streamsql: no shell in this build")
	return exitUsage
}
