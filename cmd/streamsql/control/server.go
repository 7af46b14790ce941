package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Server answers other processes.
type Server struct {
	eng    *streamsql.Engine
	socket string
	mux    *http.ServeMux
	http   *http.Server
}

const (
	privatePattern = ".control-*"
	maxRequest     = 1 << 20
	// drainTime is how long Close waits for answers that are due.
	drainTime = 5 * time.Second
)

// Serve opens the socket in the state directory dir, which eng owns, and answers until Close.
func Serve(eng *streamsql.Engine, dir string) (*Server, error) {
	s := newServer(eng)
	ln, err := listen(dir, filepath.Join(dir, SocketName))
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "no control socket in %q: other processes cannot ask this one for savepoints", dir).Wrap(err)
	}
	s.socket = filepath.Join(dir, SocketName)
	s.http = &http.Server{Handler: s.mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(ln) }() // ends with Close
	return s, nil
}

// newServer knows the answers and listens nowhere.
func newServer(eng *streamsql.Engine) *Server {
	s := &Server{eng: eng, mux: http.NewServeMux()}
	handle(s, "GET", "jobs", s.jobs)
	handle(s, "POST", "savepoint", s.savepoint)
	handle(s, "POST", "stop", s.stop)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNotFound, failed(diag.New(diag.Unsupported, diag.Pos{}, "%s %s is not known to this process", r.Method, r.URL.Path).
			WithHint("use the release of streamsql that the process runs")))
	})
	return s
}

// listen binds the socket where nobody else can reach it, and puts it in place, also of one that a killed process left,
// when only its user may connect.
func listen(dir, socket string) (net.Listener, error) {
	old, _ := filepath.Glob(filepath.Join(dir, privatePattern))
	for _, d := range old {
		_ = os.RemoveAll(d) // of a process that was killed
	}
	private, err := os.MkdirTemp(dir, privatePattern) // mode 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	path, done, err := shortPath(private)
	if err != nil {
		return nil, err
	}
	defer done()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	made := filepath.Join(private, SocketName)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, socket)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// Withdraw removes the socket: nobody can ask any more, answers that are due are still given. It is called while the
// state directory is owned, so that it is this process's socket that goes.
func (s *Server) Withdraw() {
	_ = os.Remove(s.socket) // a socket without a process behind it is what a kill leaves as well
}

// Close gives the answers that are due and ends.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // somebody asked for what will not come
	}
}

// handle registers an answer: path takes a JSON In and gives a JSON Out, or a failure.
func handle[In, Out any](s *Server, method, path string, f func(context.Context, In) (Out, error)) {
	s.mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
		var in In
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
		body.DisallowUnknownFields()
		if err := body.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			reply(w, http.StatusBadRequest, failed(diag.New(diag.Config, diag.Pos{}, "the request cannot be read").Wrap(err).
				WithHint("use the release of streamsql that the process runs")))
			return
		}
		out, err := f(r.Context(), in)
		if err != nil {
			reply(w, http.StatusUnprocessableEntity, failed(err))
			return
		}
		reply(w, http.StatusOK, out)
	})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the other side has gone
}

func (s *Server) jobs(context.Context, struct{}) ([]Job, error) {
	out := []Job{}
	for _, j := range s.eng.Jobs() {
		st := j.Status()
		job := Job{ID: j.ID(), Name: j.Name(), State: st.State.String(), Restarts: st.Restarts,
			Checkpoint: uint64(st.Checkpoint.Last), Committed: uint64(st.Checkpoint.Committed)}
		if st.Err != nil {
			job.Error = st.Err.Error()
		}
		out = append(out, job)
	}
	return out, nil
}

func (s *Server) savepoint(ctx context.Context, r SavepointRequest) (Savepoint, error) {
	j, err := s.job(r.Job)
	if err == nil {
		err = absolute(r.Dir)
	}
	if err != nil {
		return Savepoint{}, err
	}
	path, id, err := j.Savepoint(ctx, r.Dir)
	return Savepoint{Path: path, Checkpoint: uint64(id), Job: j.ID(), Name: j.Name()}, err
}

func (s *Server) stop(ctx context.Context, r StopRequest) (Stopped, error) {
	j, err := s.job(r.Job)
	if err == nil {
		err = absolute(r.Dir)
	}
	if err != nil {
		return Stopped{}, err
	}
	out := Stopped{Job: j.ID(), Name: j.Name()}
	if r.Savepoint {
		if out.Path, err = j.SavepointPath(r.Dir); err != nil {
			return out, err
		}
	}
	err = j.Stop(ctx, streamsql.StopOptions{Drain: r.Drain, Savepoint: out.Path})
	out.Checkpoint = uint64(j.Status().Checkpoint.Committed)
	return out, err
}

// absolute refuses paths that mean something else in the other process.
func absolute(dir string) error {
	if dir == "" || filepath.IsAbs(dir) {
		return nil
	}
	return diag.New(diag.Config, diag.Pos{}, "savepoint directory %q is relative", dir).WithHint("send an absolute path")
}

// job finds a running job by id, the beginning of one, or name; "" finds the only one.
func (s *Server) job(name string) (*streamsql.Job, error) {
	var found, running []*streamsql.Job
	var names []string
	for _, j := range s.eng.Jobs() {
		match := j.ID() == name || j.Name() == name || name != "" && strings.HasPrefix(j.ID(), name)
		if match {
			found = append(found, j)
		}
		if !j.Status().State.Ended() {
			running = append(running, j)
			names = append(names, j.ID()+" "+j.Name())
		}
	}
	if name == "" {
		found = running
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && name == "":
		return nil, diag.New(diag.Config, diag.Pos{}, "%d jobs run in this state directory", len(found)).
			WithDetail("%s", strings.Join(names, "\n")).WithHint("name one with --job")
	case len(found) > 1:
		return nil, diag.New(diag.Config, diag.Pos{}, "%d jobs match %q", len(found), name).WithHint("give the whole id")
	case name == "":
		return nil, diag.New(diag.Conflict, diag.Pos{}, "no job is running")
	}
	return nil, diag.New(diag.Config, diag.Pos{}, "there is no job %q", name).WithDetail("running: %s", strings.Join(names, ", ")).
		WithHint("give a job's id, the beginning of one, or its pipeline.name")
}
