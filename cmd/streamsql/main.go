// Command streamsql runs streaming SQL.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

func main() {
	text := os.Args[2]
	if os.Args[1] == "run" {
		b, err := os.ReadFile(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		text = string(b)
	}
	dir := os.Getenv("STATE")
	e, err := streamsql.Open(dir, &streamsql.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, diag.Render(err, "", ""))
		os.Exit(2)
	}
	defer e.Close()
	s := e.Script(text)
	for {
		res, err := s.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, diag.Render(err, "", text))
			os.Exit(2)
		}
		for c, err := range res.Rows() {
			if err != nil {
				fmt.Fprintln(os.Stderr, diag.Render(err, "", text))
				os.Exit(1)
			}
			fmt.Print(c.Kind, " ")
			for i := range c.Len() {
				t, null := c.Text(i)
				if null {
					t = "NULL"
				}
				fmt.Print(t, "|")
			}
			fmt.Println()
		}
		if res.Job != nil && !res.IsQuery() {
			if err := res.Job.Wait(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, diag.Render(err, "", text))
				os.Exit(1)
			}
		}
	}
}
