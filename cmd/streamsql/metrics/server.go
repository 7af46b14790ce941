package metrics

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// Server answers Prometheus, and whoever asks whether the process is well.
type Server struct {
	ln   net.Listener
	http *http.Server
}

// drainTime is how long Close waits for answers that are due.
const drainTime = 2 * time.Second

// Serve listens at address, host:port, and answers GET /metrics and GET /healthz with what jobs (Engine.Jobs) are, until
// Close. Port 0 is any free one; see Address. The answers are not protected: whoever reaches the address reads the names
// of jobs and tables.
func Serve(jobs func() []*streamsql.Job, address string, log *slog.Logger) (*Server, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "metrics cannot be served at %q", address).Wrap(err).
			WithHint("give a host and a free port, such as 127.0.0.1:9249")
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(jobs), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { health(w, jobs()) })
	s := &Server{ln: ln, http: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = s.http.Serve(ln) }() // ends with Close
	return s, nil
}

// Address is where the server listens, host:port.
func (s *Server) Address() string { return s.ln.Addr().String() }

// Close gives the answers that are due and ends.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}

// Health is the answer of /healthz: status 200 while no job has failed for good, else 503. A job that restarts is not
// failed: whoever kills a process because of this answer would only interrupt it.
type Health struct {
	Status string      `json:"status"` // "ok" or "failed"
	Jobs   []JobHealth `json:"jobs"`
}

// JobHealth is a job of it.
type JobHealth struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	State    string `json:"state"` // Flink's word, such as RUNNING
	Restarts int    `json:"restarts"`
	Error    string `json:"error,omitempty"` // why it failed, or restarted last
}

func health(w http.ResponseWriter, jobs []*streamsql.Job) {
	h, code := Health{Status: "ok", Jobs: []JobHealth{}}, http.StatusOK
	for _, j := range jobs {
		s := j.Status()
		one := JobHealth{ID: j.ID(), Name: j.Name(), State: s.State.String(), Restarts: s.Restarts}
		if s.Err != nil {
			one.Error = s.Err.Error()
		}
		if s.State == exec.Failed {
			h.Status, code = "failed", http.StatusServiceUnavailable
		}
		h.Jobs = append(h.Jobs, one)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(h) // the other side has gone
}
