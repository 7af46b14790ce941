package netproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Goal: each fault does to a connection what it says, and nothing to the bytes of others. Method: a server that answers each line, behind
// a proxy; what a client reads and which error ends it. Waits are bounded by patience only; nothing asserts how long something took,
// but that a delay is no shorter than it says.

const patience = time.Minute

// echo is a server that answers in a protocol, and tells what reached it.
type echo struct {
	ln    net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
	got   bytes.Buffer
	ended chan error // how each connection ended
}

func newEcho(t *testing.T) *echo {
	return newServer(t, func(in []byte) []byte { return in })
}

// newServer answers whatever it reads.
func newServer(t *testing.T, answer func(in []byte) []byte) *echo {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{ln: ln, ended: make(chan error, 100)}
	e.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.conns = append(e.conns, c)
			e.mu.Unlock()
			e.wg.Go(func() { e.serve(c, answer) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		e.mu.Lock()
		for _, c := range e.conns {
			c.Close()
		}
		e.mu.Unlock()
		e.wg.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn, answer func(in []byte) []byte) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		e.mu.Lock()
		e.got.Write(buf[:n])
		e.mu.Unlock()
		if err != nil {
			e.ended <- err
			c.Close()
			return
		}
		c.Write(answer(buf[:n]))
	}
}

func (e *echo) received() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got.String()
}

func start(t *testing.T, e *echo, p Protocol) *Proxy {
	t.Helper()
	x, err := Start(e.ln.Addr().String(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if open, _ := x.Connections(); open > 0 {
			t.Errorf("%d connections left", open)
		}
	})
	return x
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func inject(t *testing.T, p *Proxy, f Fault) *Injected {
	t.Helper()
	i, err := p.Inject(f)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if n, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		t.Fatalf("read %q, %v, want %q", buf[:n], err, want)
	}
}

// silent demands that nothing comes and the connection does not end. The wait is how long it is listened for.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := c.Read(make([]byte, 1))
	var ne net.Error
	if n > 0 || !errors.As(err, &ne) || !ne.Timeout() {
		t.Fatalf("read %d bytes, %v, want silence", n, err)
	}
	c.SetDeadline(time.Now().Add(patience))
}

// broken demands that the connection was reset.
func broken(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if n > 0 || err == nil || errors.Is(err, io.EOF) {
		t.Fatalf("read %d bytes, %v, want a reset", n, err)
	}
}

func over(t *testing.T, i *Injected, hits int) {
	t.Helper()
	select {
	case <-i.Done():
	case <-time.After(patience):
		t.Fatalf("%v is not over", i.Fault)
	}
	if i.Hits() != hits {
		t.Errorf("%v: %d hits, want %d", i.Fault, i.Hits(), hits)
	}
}

func TestUndisturbed(t *testing.T) {
	for _, p := range []Protocol{Bytes, Kafka, Postgres} { // what is not of the protocol passes, too
		e := newEcho(t)
		x := start(t, e, p)
		c := dial(t, x)
		say(t, c, "zzzzzzzzzzzz one\n")
		hear(t, c, "zzzzzzzzzzzz one\n")
		c.(*net.TCPConn).CloseWrite()
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		if err := <-e.ended; !errors.Is(err, io.EOF) {
			t.Errorf("the server sees %v", err)
		}
	}
}

func TestDelay(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c := dial(t, x)
	say(t, c, "a")
	hear(t, c, "a")
	i := inject(t, x, Fault{Kind: Delay, Delay: 30 * time.Millisecond})
	begin := time.Now()
	say(t, c, "b")
	hear(t, c, "b")
	if d := time.Since(begin); d < 60*time.Millisecond {
		t.Errorf("there and back took %v", d)
	}
	i.End()
	over(t, i, 2)
}

func TestPartition(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c := dial(t, x)
	say(t, c, "a")
	hear(t, c, "a")
	i := inject(t, x, Fault{Kind: Partition})
	say(t, c, "b")
	silent(t, c)
	fresh := dial(t, x)
	say(t, fresh, "c")
	silent(t, fresh)
	if got := e.received(); got != "a" {
		t.Errorf("the server received %q", got)
	}
	i.End()
	hear(t, c, "b")
	hear(t, fresh, "c")
	refusing := inject(t, x, Fault{Kind: Partition, Refuse: true})
	if c, err := net.Dial("tcp", x.Addr()); err == nil { // the refusal may come while it is made or after
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		broken(t, c)
	}
	refusing.End()
	say(t, c, "d")
	hear(t, c, "d")
}

func TestReset(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c, other := dial(t, x), dial(t, x)
	say(t, c, "before")
	hear(t, c, "before")
	i := inject(t, x, Fault{Kind: Reset, Direction: ToServer, After: 3, Times: 1})
	say(t, c, "abcdef")
	over(t, i, 1)
	<-e.ended                                                       // by a reset, which its answer to abc may have met first
	if got := e.received(); got != "beforeabc" && got != "before" { // a reset may overtake what was sent before it
		t.Errorf("the server received %q", got)
	}
	for { // the echo of abc may come first
		if _, err := c.Read(make([]byte, 1)); err != nil {
			if errors.Is(err, io.EOF) {
				t.Error("the client is told an ordinary end")
			}
			break
		}
	}
	say(t, other, "x")
	hear(t, other, "x")
}

func TestResetOfTheClientOnly(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c := dial(t, x)
	say(t, c, "a")
	hear(t, c, "a")
	i := inject(t, x, Fault{Kind: Reset, Direction: ToClient, Times: 1, ClientOnly: true})
	say(t, c, "b")
	over(t, i, 1)
	broken(t, c)
	select {
	case err := <-e.ended:
		t.Errorf("the server was told: %v", err)
	case <-time.After(100 * time.Millisecond): // how long it is listened for
	}
	x.CutAll()
	<-e.ended
}

func TestDrop(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c := dial(t, x)
	say(t, c, "a")
	hear(t, c, "a")
	i := inject(t, x, Fault{Kind: Drop, After: 2, Direction: ToClient, Times: 1})
	say(t, c, "bcd")
	over(t, i, 1)
	hear(t, c, "bc")
	silent(t, c)
	say(t, c, "e") // this direction lives
	for end := time.Now().Add(patience); e.received() != "abcde"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server received %q", e.received())
		}
	}
	silent(t, c) // the fault is over and the connection is not better
}

func TestDropOfTheEnd(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c := dial(t, x)
	say(t, c, "a")
	hear(t, c, "a")
	i := inject(t, x, Fault{Kind: Drop, Times: 1})
	c.Close()
	over(t, i, 1)
	select {
	case err := <-e.ended:
		t.Errorf("the server was told: %v", err)
	case <-time.After(100 * time.Millisecond): // how long it is listened for
	}
}

func TestEndsByItself(t *testing.T) {
	e := newEcho(t)
	x := start(t, e, Bytes)
	c := dial(t, x)
	i := inject(t, x, Fault{Kind: Partition, For: 50 * time.Millisecond})
	say(t, c, "a")
	hear(t, c, "a")
	over(t, i, i.Hits())
}

func kafkaRequest(key int16, id int32) string {
	b := binary.BigEndian.AppendUint32(nil, 8)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, 0)
	return string(binary.BigEndian.AppendUint32(b, uint32(id)))
}

func TestLoseReplyOfKafka(t *testing.T) {
	reply := func(id int32) string {
		return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 4), uint32(id)))
	}
	e := newServer(t, func(in []byte) []byte { return []byte(reply(int32(binary.BigEndian.Uint32(in[8:])))) })
	x := start(t, e, Kafka)
	c := dial(t, x)
	i := inject(t, x, Fault{Kind: LoseReply, Request: "EndTxn", Skip: 1, Times: 1, Cut: true})
	for id, key := range []int16{0, 26, 3} {
		say(t, c, kafkaRequest(key, int32(id)))
		hear(t, c, reply(int32(id)))
	}
	say(t, c, kafkaRequest(26, 9))
	broken(t, c)
	over(t, i, 1)
	if got := e.received(); len(got) != 4*12 {
		t.Errorf("the server received %d bytes", len(got))
	}
}

func TestLoseReplyOfPostgres(t *testing.T) {
	startup := string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 196608))
	query := func(text string) string {
		return "Q" + string(binary.BigEndian.AppendUint32(nil, uint32(len(text)+5))) + text + "\x00"
	}
	const ready = "Z\x00\x00\x00\x05I"
	e := newServer(t, func([]byte) []byte { return []byte(ready) })
	x := start(t, e, Postgres)
	c := dial(t, x)
	i := inject(t, x, Fault{Kind: LoseReply, Request: "COMMIT", Except: "COMMIT PREPARED", Times: 1})
	for _, text := range []string{startup, query("begin"), query("COMMIT PREPARED 'x'"), query("committed")} {
		say(t, c, text)
		hear(t, c, ready)
	}
	say(t, c, query("commit"))
	over(t, i, 1)
	silent(t, c)
	if got := e.received(); !bytes.HasSuffix([]byte(got), []byte(query("commit"))) {
		t.Errorf("the server received %q", got)
	}
}

func TestRefusedFaults(t *testing.T) {
	x := start(t, newEcho(t), Bytes)
	for _, f := range []Fault{{Kind: 17}, {Kind: Delay}, {Kind: LoseReply, Request: "EndTxn"}, {Kind: Reset, After: -1}} {
		if _, err := x.Inject(f); err == nil {
			t.Errorf("%v is injected", f)
		}
	}
}

// The same seed gives the same faults, and every kind comes up.
func TestRandom(t *testing.T) {
	draw := func(seed uint64) (out []Fault) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 200 {
			out = append(out, Random(r, Postgres, time.Second))
		}
		return out
	}
	one := draw(7)
	if !reflect.DeepEqual(one, draw(7)) || reflect.DeepEqual(one, draw(8)) {
		t.Error("faults do not follow the seed")
	}
	kinds := map[Kind]int{}
	for _, f := range one {
		if err := f.check(Postgres); err != nil {
			t.Error(err)
		}
		kinds[f.Kind]++
	}
	if len(kinds) != 5 {
		t.Errorf("%v", kinds)
	}
}
