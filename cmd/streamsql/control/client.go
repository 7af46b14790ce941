package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// ErrNobody is returned when no process answers at the socket of a state directory: none runs, or it is just starting or
// ending.
var ErrNobody = errors.New("no process answers at the control socket")

// Client asks the process that owns a state directory.
type Client struct {
	dir  string
	http *http.Client
}

// dialTime is how long a process may take to accept a connection.
const dialTime = 5 * time.Second

// NewClient asks the process that owns dir. It contacts nothing.
func NewClient(dir string) *Client {
	c := &Client{dir: dir}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, done, err := shortPath(dir)
		if err != nil {
			return nil, err
		}
		defer done()
		d := net.Dialer{Timeout: dialTime}
		return d.DialContext(ctx, "unix", path)
	}
	c.http = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return c
}

// Jobs are the jobs of the process, running and ended.
func (c *Client) Jobs(ctx context.Context) (out []Job, err error) {
	return out, c.ask(ctx, "GET", "jobs", nil, &out)
}

// Savepoint takes a savepoint; it returns when it is durable.
func (c *Client) Savepoint(ctx context.Context, r SavepointRequest) (out Savepoint, err error) {
	return out, c.ask(ctx, "POST", "savepoint", r, &out)
}

// Stop stops a job; it returns when it has ended and its output is committed.
func (c *Client) Stop(ctx context.Context, r StopRequest) (out Stopped, err error) {
	return out, c.ask(ctx, "POST", "stop", r, &out)
}

// ask sends in and reads the answer into out. Errors of the other process come back as *diag.Error.
func (c *Client) ask(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://streamsql"+prefix+path, &body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(r)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return ErrNobody
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return diag.New(diag.External, diag.Pos{}, "the process that owns state directory %q did not answer to the end", c.dir).Wrap(err).
			WithDetail("what it was asked for may have happened").WithHint("streamsql savepoint list and streamsql checkpoint show tell what is there")
	}
	defer res.Body.Close()
	answer := json.NewDecoder(res.Body)
	if res.StatusCode == http.StatusOK {
		err = answer.Decode(out)
	} else {
		var f failure
		if err = answer.Decode(&f); err == nil {
			return f.err()
		}
	}
	if err != nil {
		return diag.New(diag.External, diag.Pos{}, "the answer of the process that owns state directory %q cannot be read", c.dir).Wrap(err).
			WithHint("use the release of streamsql that the process runs")
	}
	return nil
}
