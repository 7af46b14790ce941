package repl

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chzyer/readline"
)

// terminal is a line editor with history and completion. It is the only user of the readline library.
type terminal struct{ rl *readline.Instance }

// newTerminal opens the editor on standard input and output. complete gets the line up to the cursor and returns the
// ways to continue it, each with the last n characters before the cursor being part of the completed word.
func newTerminal(historyFile string, complete func(line string) (rest []string, n int)) (*terminal, error) {
	if historyFile != "" {
		if err := os.MkdirAll(filepath.Dir(historyFile), 0o700); err != nil {
			historyFile = "" // a session without a history is better than none
		}
	}
	rl, err := readline.NewEx(&readline.Config{
		Prompt: promptFirst, HistoryFile: historyFile, HistoryLimit: 2000, DisableAutoSaveHistory: true,
		HistorySearchFold: true, AutoComplete: completer(complete), InterruptPrompt: "^C", EOFPrompt: "\n",
	})
	if err != nil {
		return nil, err
	}
	return &terminal{rl}, nil
}

// ReadLine implements lines.
func (t *terminal) ReadLine(prompt string) (string, error) {
	t.rl.SetPrompt(prompt)
	line, err := t.rl.Readline()
	if err == readline.ErrInterrupt {
		return "", errInterrupt
	}
	return line, err
}

// Remember implements lines. The history holds lines, so a statement becomes one, unless a comment to the end of a line
// would then swallow the rest.
func (t *terminal) Remember(statement string) {
	all := strings.Split(strings.TrimSpace(statement), "\n")
	if !strings.Contains(statement, "--") {
		for i := range all {
			all[i] = strings.TrimSpace(all[i])
		}
		all = []string{strings.Join(all, " ")}
	}
	for _, l := range all {
		_ = t.rl.SaveHistory(l) // a full disk must not end the session
	}
}

// Close ends a ReadLine that waits and gives the terminal back.
func (t *terminal) Close() error { return t.rl.Close() }

type completer func(line string) ([]string, int)

// Do implements readline.AutoCompleter.
func (c completer) Do(line []rune, pos int) ([][]rune, int) {
	rest, n := c(string(line[:pos]))
	out := make([][]rune, len(rest))
	for i, r := range rest {
		out[i] = []rune(r)
	}
	return out, n
}
