package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: nothing that comes through the socket ends a process: neither a request the one that runs the jobs, nor an answer the one
// that asks. Method: requests go to the handlers of an engine without jobs, so that none has an effect; answers to the client.

func FuzzRequest(f *testing.F) {
	for _, body := range []string{`{}`, ``, `{"Job":"a","Dir":"/x"}`, `{"Job":"","Drain":true,"Savepoint":true,"Dir":"relative"}`, `{"Job":1}`, `{"Other":0}`, `[[[`, `{"Job":"\ud800"}`} {
		f.Add("POST", "/v1/savepoint", []byte(body))
		f.Add("POST", "/v1/stop", []byte(body))
		f.Add("GET", "/v1/jobs", []byte(body))
	}
	f.Add("DELETE", "/v2/jobs", []byte(nil))
	eng, err := streamsql.Open("", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = eng.Close() })
	s := newServer(eng)
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		r, err := http.NewRequest(method, "http://streamsql", bytes.NewReader(body))
		if err != nil {
			t.Skip() // no client sends it
		}
		r.URL.Path = path
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK:
			var jobs []Job
			if err := json.Unmarshal(w.Body.Bytes(), &jobs); err != nil || len(jobs) > 0 {
				t.Errorf("%s %s: %v, %s", method, path, err, w.Body)
			}
		case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
			var why failure
			if err := json.Unmarshal(w.Body.Bytes(), &why); err != nil || why.Message == "" || why.Code == diag.Internal {
				t.Errorf("%s %s: %v, %s", method, path, err, w.Body)
			}
		default:
			if w.Code >= http.StatusInternalServerError { // others are of net/http: a path that is cleaned, a method that is not allowed
				t.Errorf("%s %s: status %d", method, path, w.Code)
			}
		}
	})
}

// answering gives one answer to every request.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

func FuzzAnswer(f *testing.F) {
	for _, body := range []string{``, `{}`, `null`, `[]`, `[{"ID":"a","State":"RUNNING","Checkpoint":18446744073709551615}]`, `[{"Checkpoint":-1}]`,
		`{"Path":"/x","Checkpoint":3}`, `{"Code":"conflict","Message":"no","Hint":"x"}`, `{"Code":7}`} {
		f.Add(http.StatusOK, []byte(body))
		f.Add(http.StatusUnprocessableEntity, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		c := NewClient(t.Name())
		c.http.Transport = answering{status, body}
		_, jobs := c.Jobs(context.Background())
		_, savepoint := c.Savepoint(context.Background(), SavepointRequest{})
		_, stop := c.Stop(context.Background(), StopRequest{})
		for _, err := range []error{jobs, savepoint, stop} {
			var d *diag.Error
			if status != http.StatusOK && err == nil || err != nil && !errors.As(err, &d) {
				t.Errorf("status %d, %q: %v", status, body, err)
			}
		}
	})
}
