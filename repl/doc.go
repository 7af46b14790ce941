// Package repl is the engine for people: results rendered as tables, CSV or JSON, scripts run statement by statement,
// and the interactive shell. It uses the public package streamsql only.
package repl
