package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PGOption changes the server that Postgres starts.
type PGOption func(*pgOptions)

type pgOptions struct {
	config   map[string]string
	password string
}

// PGMaxPrepared sets max_prepared_transactions. The default here is 64; PostgreSQL's own is 0, which refuses
// PREPARE TRANSACTION.
func PGMaxPrepared(n int) PGOption { return PGConfig("max_prepared_transactions", strconv.Itoa(n)) }

// PGDurable turns fsync on. It is off by default: a killed server loses nothing that the operating system has, so only
// tests of a power cut need it.
func PGDurable() PGOption { return PGConfig("fsync", "on") }

// PGConfig sets a parameter of postgresql.conf.
func PGConfig(key, value string) PGOption { return func(o *pgOptions) { o.config[key] = value } }

// PGPassword makes the server demand this password (SCRAM-SHA-256) of its user.
func PGPassword(password string) PGOption { return func(o *pgOptions) { o.password = password } }

// PGUser is the one role of a server started here, a superuser.
const PGUser = "postgres"

// PG is a PostgreSQL server.
type PG struct {
	opts pgOptions
	bin  string // folder of initdb and postgres
	dir  string // data, socket and log live here
	port int
	cred *syscall.Credential
	mu   sync.Mutex
	proc *Process
}

// SharedPostgres returns the server of this test binary, started on first use with max_prepared_transactions 64. Tests
// must not stop it; each takes a database of its own (CreateDatabase). Prepared transactions count for the whole
// server: filter pg_prepared_xacts by database.
func SharedPostgres(t testing.TB) *PG {
	t.Helper()
	skipShort(t, "PostgreSQL server")
	needMain(t)
	p, err := shared.pg.get(func() (*PG, error) {
		p, err := startPostgres(nil)
		if err == nil {
			onStop(p.close)
		}
		return p, err
	})
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	return p
}

// Postgres starts a server of this test's own, stopped when the test ends.
func Postgres(t testing.TB, opts ...PGOption) *PG {
	t.Helper()
	skipShort(t, "PostgreSQL server")
	p, err := startPostgres(opts)
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("postgres wrote:\n%s", tail(p.log(), 30))
		}
		p.close()
	})
	return p
}

func startPostgres(opts []PGOption) (*PG, error) {
	o := pgOptions{config: map[string]string{
		"max_prepared_transactions": "256", "max_connections": "300", "fsync": "off", "shared_buffers": "32MB",
		"log_min_messages": "warning", "log_line_prefix": "%m [%p] ", "autovacuum": "off",
	}}
	for _, f := range opts {
		f(&o)
	}
	bin, err := findPostgres()
	if err != nil {
		return nil, err
	}
	dir, err := runDir("pg")
	if err != nil {
		return nil, err
	}
	p := &PG{opts: o, bin: bin, dir: dir}
	if p.port, err = freePort(); err != nil {
		return nil, err
	}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	if err := p.Restart(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// findPostgres returns the folder of the server's programs. Debian keeps them off the PATH.
func findPostgres() (string, error) {
	var candidates []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		candidates = append(candidates, filepath.Dir(initdb))
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			candidates = append(candidates, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found) // the newest version first
		candidates = append(candidates, found...)
	}
	for _, dir := range candidates {
		if isProgram(filepath.Join(dir, "initdb")) && isProgram(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("the tests run a real PostgreSQL, and no initdb and postgres were found on the PATH, by pg_config, or in /usr/lib/postgresql: " +
		"install the server (Debian: apt-get install postgresql; 15 or newer), or run with -short")
}

func isProgram(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// unprivileged returns whom to run PostgreSQL as: it refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("the tests run as root, PostgreSQL refuses to, and there is no account postgres or nobody to run it as")
}

// prepare makes the data directory.
func (p *PG) prepare() (err error) {
	if p.cred, err = unprivileged(); err != nil {
		return err
	}
	args := []string{"-D", p.data(), "-U", PGUser, "-E", "UTF8", "--locale=C", "--no-sync", "--auth-local=trust"}
	if p.opts.password == "" {
		args = append(args, "--auth-host=trust")
	} else {
		pw := filepath.Join(p.dir, "password")
		if err := os.WriteFile(pw, []byte(p.opts.password+"\n"), 0o644); err != nil {
			return err
		}
		args = append(args, "--auth-host=scram-sha-256", "--pwfile="+pw)
	}
	if p.cred != nil {
		if err := os.Chown(p.dir, int(p.cred.Uid), int(p.cred.Gid)); err != nil {
			return err
		}
	}
	cmd := exec.Command(filepath.Join(p.bin, "initdb"), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, sysProcAttr(p.cred, syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, tail(string(out), 20))
	}
	var conf strings.Builder
	fmt.Fprintf(&conf, "\nlisten_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\n", p.port, p.dir)
	for _, k := range slices.Sorted(maps.Keys(p.opts.config)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", k, strings.ReplaceAll(p.opts.config[k], "'", "''"))
	}
	f, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(conf.String())
	return errors.Join(err, f.Close())
}

func (p *PG) data() string { return filepath.Join(p.dir, "data") }

// Addr returns "host:port".
func (p *PG) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// Password returns the password of PGUser, "" when the server asks for none.
func (p *PG) Password() string { return p.opts.password }

// DSN returns the URL of a database, "" for the one every server has.
func (p *PG) DSN(db string) string {
	if db == "" {
		db = "postgres"
	}
	u := url.URL{Scheme: "postgres", User: url.User(PGUser), Host: p.Addr(), Path: "/" + db, RawQuery: "sslmode=disable"}
	if p.opts.password != "" {
		u.User = url.UserPassword(PGUser, p.opts.password)
	}
	return u.String()
}

// JDBCURL returns the URL of a database as a JDBC table names it, without user and password.
func (p *PG) JDBCURL(db string) string { return fmt.Sprintf("jdbc:postgresql://%s/%s", p.Addr(), db) }

// Restart starts the server if it does not run and returns when it answers. After a Kill it recovers from its log
// first.
func (p *PG) Restart() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil && p.proc.Alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		// SIGQUIT, PostgreSQL's immediate shutdown: the postmaster takes its children along and frees its shared memory.
		proc, err := start(Command{Path: filepath.Join(p.bin, "postgres"), Args: []string{"-D", p.data()}, Dir: p.dir,
			cred: p.cred, death: syscall.SIGQUIT})
		if err != nil {
			return err
		}
		p.proc = proc
		err = p.ready(ctx, proc)
		// The children of a killed postmaster notice its death within moments, and hold its shared memory until then.
		if err == nil || ctx.Err() != nil || !strings.Contains(proc.Output(), "shared memory block") {
			return err
		}
	}
}

// ready waits until the server lets us in.
func (p *PG) ready(ctx context.Context, proc *Process) error {
	for {
		conn, err := pgx.Connect(ctx, p.DSN(""))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-proc.Done():
			return fmt.Errorf("postgres ended during its start (%v); it wrote:\n%s", proc.cmd.ProcessState, tail(proc.Output(), 30))
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer after %v: %w; it wrote:\n%s", startTimeout, err, tail(proc.Output(), 30))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (p *PG) process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc
}

func (p *PG) log() string {
	if proc := p.process(); proc != nil {
		return proc.Output()
	}
	return ""
}

// Kill ends the postmaster with SIGKILL; its children follow when they notice.
func (p *PG) Kill() {
	if proc := p.process(); proc != nil {
		proc.Kill()
	}
}

// Pause stops the postmaster (SIGSTOP), so that no new connection succeeds; open ones go on. Resume ends it.
func (p *PG) Pause() error { return p.process().Pause() }

// Resume ends a Pause.
func (p *PG) Resume() error { return p.process().Resume() }

// Stop shuts the server down (SIGINT, "fast": connections are cut, the data is checkpointed) and returns when it is
// gone. Restart brings it back.
func (p *PG) Stop() {
	proc := p.process()
	if proc == nil {
		return
	}
	proc.Signal(syscall.SIGINT)
	select {
	case <-proc.Done():
	case <-time.After(stopGrace):
		proc.Kill()
	}
}

// close ends the server for good.
func (p *PG) close() {
	if proc := p.process(); proc != nil {
		proc.Signal(syscall.SIGCONT)
		proc.Signal(syscall.SIGQUIT)
		select {
		case <-proc.Done():
		case <-time.After(stopGrace):
			proc.Kill()
		}
	}
	if err := os.RemoveAll(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "harness: %v\n", err)
	}
}

// CreateDatabase creates a database of this test's own and returns its name. It stays until the server ends.
func (p *PG) CreateDatabase(t testing.TB) string {
	t.Helper()
	name := UniqueName(t)
	p.Exec(t, "", "CREATE DATABASE "+name)
	return name
}

// Exec runs SQL statements in the database, "" for the one every server has.
func (p *PG) Exec(t testing.TB, db string, statements ...string) {
	t.Helper()
	conn := p.Conn(t, db)
	defer conn.Close(context.Background())
	for _, s := range statements {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		_, err := conn.Exec(ctx, s)
		cancel()
		if err != nil {
			t.Fatalf("harness: %s: %v", s, err)
		}
	}
}

// Conn opens a connection, closed when the test ends.
func (p *PG) Conn(t testing.TB, db string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.DSN(db))
	if err != nil {
		t.Fatalf("harness: connect to postgres: %v", err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// Rows runs a query and returns its rows, the columns of each rendered by fmt and joined by "|".
func (p *PG) Rows(t testing.TB, db, query string, args ...any) []string {
	t.Helper()
	conn := p.Conn(t, db)
	defer conn.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		t.Fatalf("harness: %s: %v", query, err)
	}
	lines, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (string, error) {
		vs, err := r.Values()
		cols := make([]string, len(vs))
		for i, v := range vs {
			cols[i] = fmt.Sprint(v)
		}
		return strings.Join(cols, "|"), err
	})
	if err != nil {
		t.Fatalf("harness: %s: %v", query, err)
	}
	return lines
}

// PreparedTransactions returns the global identifiers of the prepared transactions of the database, sorted.
func (p *PG) PreparedTransactions(t testing.TB, db string) []string {
	t.Helper()
	return p.Rows(t, "", "SELECT gid FROM pg_prepared_xacts WHERE database = $1 ORDER BY gid", db)
}
