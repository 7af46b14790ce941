// Command embedding is a Go program with streaming SQL inside: sensor readings come from the program, a SQL job with a
// Go function of the program's own flags the hot ones, and they come back to the program, exactly once. The job's state,
// what it has read and what it has written are one checkpoint.
//
//	go run ./examples/embedding
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/streamsql/streamsql"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	// "" keeps tables, state and checkpoints in memory; a directory keeps them over restarts.
	eng, err := streamsql.Open("", &streamsql.Options{Settings: map[string]string{"parallelism.default": "1"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()

	// A Go function, callable in SQL from here on.
	if err := eng.Register(streamsql.Func1("FAHRENHEIT", func(c float64) (float64, error) { return c*9/5 + 32, nil })); err != nil {
		return err
	}
	job, err := define(ctx, eng)
	if err != nil {
		return err
	}

	// Feed the input table. Send blocks while the job is behind.
	readings, err := eng.Feed("readings")
	if err != nil {
		return err
	}
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for i, celsius := range []float64{20.5, 31, 36.5, 22, 40} {
		sensor := []string{"roof", "cellar"}[i%2]
		if err := readings.Send(ctx, sensor, celsius, start.Add(time.Duration(i)*time.Minute)); err != nil {
			return err
		}
	}
	readings.Close()

	// Read the output table: a row is there when the checkpoint that holds it is committed.
	hot, err := eng.Queue("hot")
	if err != nil {
		return err
	}
	for {
		row, err := hot.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var sensor string
		var fahrenheit float64
		var at time.Time
		if err := row.Scan(&sensor, &fahrenheit, &at); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s %.1f°F at %s\n", row.Kind, sensor, fahrenheit, at.Format(time.TimeOnly))
	}
	return job.Wait(ctx)
}

// define creates the tables and starts the job between them.
func define(ctx context.Context, eng *streamsql.Engine) (*streamsql.Job, error) {
	script := eng.Script(`
		CREATE TABLE readings (sensor STRING, celsius DOUBLE, ts TIMESTAMP(3))
			WITH ('connector' = 'memory', 'bounded' = 'true');
		CREATE TABLE hot (sensor STRING, fahrenheit DOUBLE, ts TIMESTAMP(3))
			WITH ('connector' = 'memory');
		INSERT INTO hot SELECT sensor, FAHRENHEIT(celsius), ts FROM readings WHERE celsius > 30;`)
	var job *streamsql.Job
	for {
		res, err := script.Next(ctx)
		if err == io.EOF {
			return job, nil
		}
		if err != nil {
			return nil, err
		}
		job = res.Job
	}
}
