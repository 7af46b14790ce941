package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/sql/diag"
)

// A connection can end without a word: a firewall forgets it, the machine behind it is gone, a reply is lost on the way. Who waits
// for an answer then waits for ever, and a commit is not cut short by the job's end. A plain time limit would be wrong, too: a
// statement that waits for a lock, or a commit that waits for a standby, may take long, and ending it would be no help.
//
// So when nothing has moved for a while and an answer is due, the server is asked about the session on a second one. If it is at
// work, the wait goes on. If it has nothing to do, or waits for us, what is between us is lost: the session is ended on both sides,
// so that it holds no locks, and whoever waited finds out on a new one what became of the transaction.
const (
	askAfter  = 10 * time.Second // without a byte; a third of it is how long the answer of a server that has nothing to do may be on its way
	askWithin = 10 * time.Second // for the second session
	// connectWithin bounds one try to connect, unless the url has a longer connect_timeout.
	connectWithin = 30 * time.Second
	// pooledPatience is for sessions that cannot be asked about, because a pooler stands between: nobody knows the server's process.
	pooledPatience = 10 * time.Minute
)

// watched is the connection of a session.
type watched struct {
	net.Conn
	who    *pgx.ConnConfig // of the session; to ask, the same way is taken
	after  time.Duration   // askAfter
	far    time.Duration   // how long the server may be out of reach while an answer is due
	ctx    context.Context // until Close; the timer's goroutine has nobody else to ask
	cancel context.CancelFunc
	timer  *time.Timer

	mu    sync.Mutex
	pid   uint32 // of the server's process; 0 = not known
	due   bool   // something was sent, and the server is not ready for more
	moved time.Time
	idle  bool // at the last look it had nothing to do
	in    messages
	lost  error
	broke error // the first error of the connection
}

// watch makes connections of cc find out that an answer is lost.
func watch(cc *pgx.ConnConfig, after, far time.Duration) {
	who := cc.Copy()
	who.RuntimeParams["application_name"] = "streamsql:ask"
	cc.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		w := &watched{Conn: conn, who: who, after: after, far: far}
		w.ctx, w.cancel = context.WithCancel(context.Background())
		w.timer = time.AfterFunc(after, w.check)
		w.timer.Stop() // until something is sent
		return w, nil
	}
}

// known tells the connection of conn which process of the server it has.
func known(conn *pgx.Conn, pid uint32) {
	if w, ok := conn.PgConn().Conn().(*watched); ok && pid == conn.PgConn().PID() { // a pooler makes its own numbers
		w.mu.Lock()
		w.pid = pid
		w.mu.Unlock()
	}
}

// processOf is the server's process of a session, also of one that broke; 0 when it is not known.
func processOf(conn *pgx.Conn) uint32 {
	if w, ok := conn.PgConn().Conn().(*watched); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.pid
	}
	return 0
}

// Write implements net.Conn.
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.moved, w.idle = time.Now(), false
	if !w.due {
		w.due = true
		w.timer.Reset(w.after)
	}
	w.mu.Unlock()
	n, err := w.Conn.Write(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved = time.Now()
	return n, w.why(err)
}

// Read implements net.Conn.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > 0 {
		w.moved, w.idle = time.Now(), false
		if w.in.scan(b[:n]) {
			w.due = false
		}
	}
	return n, w.why(err)
}

// why is the error to return for err: that the connection was given up says more than that it is closed.
func (w *watched) why(err error) error {
	if err != nil && w.lost != nil {
		err = w.lost
	}
	if err != nil && w.broke == nil {
		w.broke = err
	}
	return err
}

// cause is the error to tell for err, which a statement on conn ended with: pgx says only that the connection is closed in
// places where it was the one to close it.
func cause(conn *pgx.Conn, err error) error {
	if conn == nil || !errors.Is(err, pgconn.ErrConnClosed) {
		return err
	}
	if w, ok := conn.PgConn().Conn().(*watched); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.broke != nil {
			return w.broke
		}
	}
	return err
}

// Close implements net.Conn.
func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel()
	return w.Conn.Close()
}

// check runs when nothing may have moved for w.after.
func (w *watched) check() {
	w.mu.Lock()
	pid, since, again, quiet := w.pid, w.moved, w.idle, time.Since(w.moved)
	if !w.due || w.lost != nil || w.ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	if quiet < w.after {
		w.again(w.after - quiet)
		return
	}
	busy, err := w.ask(pid, again)
	w.mu.Lock()
	defer w.mu.Unlock()
	far := w.far
	if pid == 0 {
		far = max(far, pooledPatience)
	}
	switch {
	case w.ctx.Err() != nil || !w.due || !w.moved.Equal(since): // it came meanwhile
		w.idle = false
		w.again(w.after)
		return
	case err != nil && quiet < far, err == nil && busy:
		w.idle = false
		w.again(w.after)
		return
	case err == nil && !again:
		w.idle = true
		w.again(w.after / 3)
		return
	}
	e := diag.New(diag.External, diag.Pos{}, "PostgreSQL at %s:%d: the answer to a statement is lost", w.who.Host, w.who.Port).
		WithDetail("nothing came for %s, and the server has nothing to do for this session any more", quiet.Round(time.Second))
	if err != nil {
		e.WithDetail("nothing came for %s, and the server does not say what its session does", quiet.Round(time.Second)).Wrap(err)
	}
	w.lost = e.WithHint("look for what drops connections silently between here and the server: firewalls, load balancers, poolers")
	_ = w.Conn.Close() // whoever reads or writes gets w.lost
}

// again lets check run after d.
func (w *watched) again(d time.Duration) {
	if w.ctx.Err() == nil {
		w.timer.Reset(d)
	}
}

var errUnknownProcess = errors.New("the session's process is not known, there is a pooler between")

// ask tells whether the server is at work for the session. With end, a process that is not is ended.
func (w *watched) ask(pid uint32, end bool) (busy bool, err error) {
	if pid == 0 {
		return false, errUnknownProcess
	}
	ctx, cancel := context.WithTimeout(w.ctx, askWithin)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, w.who)
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	var state *string
	err = conn.QueryRow(ctx, `SELECT state, state IN ('active', 'fastpath function call') AND wait_event_type IS DISTINCT FROM 'Client'
		FROM pg_stat_activity WHERE pid = $1 AND datname = current_database()`, int32(pid)).Scan(&state, &busy)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case state == nil || *state == "disabled":
		return false, errors.New("the server keeps no record of what sessions do (track_activities)")
	case !busy && end:
		_, err = conn.Exec(ctx, `SELECT pg_terminate_backend($1)`, int32(pid))
	}
	return busy, err
}

// messages follows the server's messages: byte type, int32 length with itself.
type messages struct {
	head [5]byte
	have int // bytes of head
	left int // bytes of the message that are still to come
}

// scan takes bytes in and reports whether they end with the server's word that it is ready (ReadyForQuery).
func (m *messages) scan(b []byte) (ready bool) {
	for len(b) > 0 {
		if m.left == 0 {
			n := copy(m.head[m.have:], b)
			m.have, b = m.have+n, b[n:]
			if m.have < len(m.head) {
				return false
			}
			m.left = max(0, int(binary.BigEndian.Uint32(m.head[1:]))-4)
		}
		n := min(m.left, len(b))
		m.left, b = m.left-n, b[n:]
		if ready = m.left == 0 && m.head[0] == 'Z'; m.left == 0 {
			m.have = 0
		}
	}
	return ready
}
