package streamsql_test

// Goal: the documentation of the package runs. Method: Example functions, whose output go test compares.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

var ctx = context.Background()

// oneSubtask keeps the examples' rows in one order.
var oneSubtask = map[string]string{"parallelism.default": "1"}

// must ends an example that went wrong; a program returns its errors.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// An engine is opened, runs statements, and returns the rows of a query as they come.
func Example() {
	eng := must(streamsql.Open("", nil)) // "" keeps everything in memory
	defer eng.Close()

	res := must(eng.Exec(ctx, `SELECT name, price * 2 AS twice FROM (VALUES ('tea', 3), ('cake', 5)) AS t (name, price)`))
	for row, err := range res.Rows() {
		if err != nil {
			log.Fatal(err)
		}
		var name string
		var twice int
		if err := row.Scan(&name, &twice); err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Kind, name, twice)
	}
	// Output:
	// +I tea 6
	// +I cake 10
}

// A state directory keeps tables, checkpoints and state. It has one owner at a time.
func ExampleOpen() {
	dir := must(os.MkdirTemp("", "streamsql-example-"))
	defer os.RemoveAll(dir)

	eng := must(streamsql.Open(dir, nil))
	must(eng.Exec(ctx, `CREATE TABLE t (id INT) WITH ('connector' = 'blackhole')`))
	_, err := streamsql.Open(dir, nil)
	fmt.Println("second owner:", diag.CodeOf(err) == diag.Conflict)
	eng.Close()

	eng = must(streamsql.Open(dir, nil)) // the table is still there
	defer eng.Close()
	for row := range must(eng.Exec(ctx, `SHOW TABLES`)).Rows() {
		name, _ := row.Text(0)
		fmt.Println("table:", name)
	}
	// Output:
	// second owner: true
	// table: t
}

// Errors say where in the text, what, why, and how to fix it.
func ExampleEngine_Exec_error() {
	eng := must(streamsql.Open("", nil))
	defer eng.Close()
	_, err := eng.Exec(ctx, `SELECT UPER('x')`)
	var e *diag.Error
	if errors.As(err, &e) {
		fmt.Println(e.Pos.Line, e.Pos.Col, e.Message)
		fmt.Println(e.Hint)
	}
	// Output:
	// 1 8 unknown function UPER
	// did you mean UPPER?
}

// A query over a stream that changes its rows gives each change with its kind: +I, -U, +U or -D.
func ExampleResult_Rows() {
	eng := must(streamsql.Open("", &streamsql.Options{Settings: oneSubtask}))
	defer eng.Close()
	must(eng.Exec(ctx, `CREATE TABLE visits (city STRING) WITH ('connector' = 'memory')`))
	visits := must(eng.Feed("visits"))
	res := must(eng.Exec(ctx, `SELECT city, COUNT(*) FROM visits GROUP BY city`))

	must(0, visits.Send(ctx, "Oslo"))
	must(0, visits.Send(ctx, "Rome"))
	seen := 0
	for row, err := range res.Rows() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Kind, row.Values())
		switch seen++; seen {
		case 2:
			must(0, visits.Send(ctx, "Oslo"))
		case 4:
			return // ending the iteration stops the query
		}
	}
	// Output:
	// +I [Oslo 1]
	// +I [Rome 1]
	// -U [Oslo 1]
	// +U [Oslo 2]
}

// A script's statements are executed one by one; an INSERT returns its running job.
func ExampleEngine_Script() {
	eng := must(streamsql.Open("", &streamsql.Options{Settings: oneSubtask, Output: os.Stdout}))
	defer eng.Close()
	script := eng.Script(`
		CREATE TABLE lines (n INT, text STRING) WITH ('connector' = 'print');
		INSERT INTO lines VALUES (1, 'one'), (2, 'two');`)
	for {
		res, err := script.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if res.Job != nil {
			fmt.Println("job", res.Job.Name(), "ended:", res.Job.Wait(ctx))
		}
	}
	// Output:
	// +I[1, one]
	// +I[2, two]
	// job insert-into_default_catalog.default_database.lines ended: <nil>
}

// NULL goes into a pointer; any column's text goes into a string.
func ExampleRow_Scan() {
	eng := must(streamsql.Open("", nil))
	defer eng.Close()
	res := must(eng.Exec(ctx, `SELECT CAST(NULL AS INT), CAST(1.50 AS DECIMAL(5, 2)), ARRAY['a', 'b'], TRUE`))
	for row, err := range res.Rows() {
		if err != nil {
			log.Fatal(err)
		}
		var missing *int64
		var price streamsql.Decimal
		var list []any
		var text string
		if err := row.Scan(&missing, &price, &list, &text); err != nil {
			log.Fatal(err)
		}
		fmt.Println(missing == nil, price, list, text)
	}
	// Output: true 1.50 [a b] TRUE
}

// A Go function becomes a SQL function. NULL arguments never reach it.
func ExampleEngine_Register() {
	eng := must(streamsql.Open("", nil))
	defer eng.Close()
	domain := func(email string) (string, error) {
		_, host, ok := strings.Cut(email, "@")
		if !ok {
			return "", fmt.Errorf("%q has no @", email)
		}
		return host, nil
	}
	if err := eng.Register(streamsql.Func1("DOMAIN", domain)); err != nil {
		log.Fatal(err)
	}
	res := must(eng.Exec(ctx, `SELECT DOMAIN(email) FROM (VALUES ('ann@example.org'), (CAST(NULL AS STRING))) AS t (email)`))
	for row, err := range res.Rows() {
		if err != nil {
			log.Fatal(err)
		}
		host, null := row.Text(0)
		fmt.Printf("%q %v\n", host, null)
	}
	// Output:
	// "example.org" false
	// "" true
}

// Tables of connector 'memory' are fed and read by the program. Both ends take part in the job's checkpoints: a row is
// in the queue once the checkpoint that holds it is committed.
func ExampleEngine_Feed() {
	eng := must(streamsql.Open("", &streamsql.Options{Settings: oneSubtask}))
	defer eng.Close()
	must(eng.Exec(ctx, `CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'memory', 'bounded' = 'true')`))
	must(eng.Exec(ctx, `CREATE TABLE big_orders (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'memory')`))
	job := must(eng.Exec(ctx, `INSERT INTO big_orders SELECT * FROM orders WHERE amount >= 100`)).Job

	orders, big := must(eng.Feed("orders")), must(eng.Queue("big_orders"))
	for id, amount := range []string{"99.99", "100", "250.5"} {
		must(0, orders.Send(ctx, id, amount))
	}
	orders.Close() // the job ends when it has read everything
	for {
		row, err := big.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Values()...)
	}
	fmt.Println("ended:", job.Wait(ctx))
	// Output:
	// 1 100.00
	// 2 250.50
	// ended: <nil>
}

// A job that is stopped leaves a checkpoint; the same statement goes on from it, also in another process.
func ExampleJob_Stop() {
	dir := must(os.MkdirTemp("", "streamsql-example-"))
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	write := func(name, text string) {
		must(0, os.MkdirAll(in, 0o755))
		must(0, os.WriteFile(filepath.Join(in, name), []byte(text), 0o644))
	}
	run := func() {
		eng := must(streamsql.Open(filepath.Join(dir, "state"), &streamsql.Options{Settings: oneSubtask, Redefine: true}))
		defer eng.Close()
		must(eng.Exec(ctx, fmt.Sprintf(`CREATE TABLE i (n INT) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'json', 'source.monitor-interval' = '10 ms')`, in)))
		must(eng.Exec(ctx, fmt.Sprintf(`CREATE TABLE o (n INT) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'json')`, out)))
		job := must(eng.Exec(ctx, `INSERT INTO o SELECT n * 10 FROM i`)).Job
		id := must(job.Checkpoint(ctx))
		must(0, job.Stop(ctx, streamsql.StopOptions{}))
		fmt.Println("took checkpoints:", job.Status().Checkpoint.Last > id, "resumed:", job.Status().Checkpoint.Restored > 0)
	}
	write("a.json", `{"n":1}`+"\n")
	run()
	write("b.json", `{"n":2}`+"\n")
	run()
	// Output:
	// took checkpoints: true resumed: false
	// took checkpoints: true resumed: true
}
