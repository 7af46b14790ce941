// Package repl is the engine for people: results rendered as tables, CSV or JSON, scripts run statement by statement,
// and the interactive shell.
//
//	Runner    a script: statements in order, rows before the next statement, waits for its jobs
//	RunPipe   a script that arrives line by line, with commands of the shell in it
//	Shell     a person: prompts, \commands, background jobs, Ctrl-C for the query and not the shell
//	Printer   one result in one format; Progress and Summary tell of jobs
//
// It uses the public package streamsql and what its results are made of; terminal.go alone knows the line editor. What a
// query prints is flushed before the next statement starts.
package repl
