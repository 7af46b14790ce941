package netproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// conn is one connection through the proxy.
type conn struct {
	proxy          *Proxy
	client, server *net.TCPConn
	up, down       *pipe         // to the server, to the client; nil until the server is reached
	gone           chan struct{} // closed when both sides were reset
	once           sync.Once

	// Under the proxy's lock.
	clientGone bool                // the client's side was reset and the server was not told
	lost       map[int32]*Injected // Kafka: whose replies are lost, by correlation id
	losing     *Injected           // PostgreSQL: the next reply is lost
}

// dialTimeout bounds reaching the server.
const dialTimeout = 10 * time.Second

func (c *conn) run() {
	defer func() {
		c.proxy.mu.Lock()
		delete(c.proxy.conns, c)
		for _, i := range c.proxy.faults {
			delete(i.began, c.up)
			delete(i.began, c.down)
		}
		c.proxy.mu.Unlock()
	}()
	if !c.proxy.admit(c) {
		reset(c.client)
		return
	}
	nc, err := net.DialTimeout("tcp", c.proxy.target, dialTimeout)
	if err != nil {
		reset(c.client)
		return
	}
	server := nc.(*net.TCPConn)
	c.proxy.mu.Lock()
	c.server = server
	c.up = newPipe(c, ToServer, c.client, server)
	c.down = newPipe(c, ToClient, server, c.client)
	c.proxy.mu.Unlock()
	select {
	case <-c.gone: // cut while it dialed
		reset(server)
		return
	default:
	}
	var wg sync.WaitGroup
	for _, d := range []*pipe{c.up, c.down} {
		wg.Go(d.read)
		wg.Go(d.write)
	}
	wg.Wait()
	c.client.Close()
	c.server.Close()
}

// cut resets both sides. The proxy's lock is held.
func (c *conn) cut() {
	c.once.Do(func() {
		close(c.gone)
		reset(c.client)
		if c.server != nil {
			reset(c.server)
		}
	})
}

// cutClient resets the client's side only: whatever it sent later is not known to the server, and the server's answers
// vanish. The proxy's lock is held.
func (c *conn) cutClient() {
	c.up.dead, c.down.dead, c.clientGone = true, true, true
	reset(c.client)
}

// reset closes a connection with RST.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails on a closed one only
	_ = c.Close()
}

// message is what is forwarded or lost as a whole: bytes, or the end of the connection.
type message struct {
	data   []byte
	end    bool // the sender is done
	broken bool // with end: by a reset
	due    time.Time
	what   request
}

// pipe is one direction of a connection.
type pipe struct {
	c        *conn
	way      Direction
	from, to *net.TCPConn
	queue    chan message
	framing  *framing

	// Under the proxy's lock.
	passed int64
	dead   bool // nothing passes any more, and nobody is told
}

// queued bounds the messages that wait in one direction; a sender behind them waits, as behind a full window.
const queued = 256

func newPipe(c *conn, way Direction, from, to *net.TCPConn) *pipe {
	return &pipe{c: c, way: way, from: from, to: to, queue: make(chan message, queued), framing: newFraming(c.proxy.protocol, way)}
}

// read takes messages from the sender until it is done.
func (d *pipe) read() {
	defer close(d.queue)
	in := bufio.NewReaderSize(d.from, 64<<10)
	for {
		m, err := d.framing.next(in)
		if err != nil {
			m = message{data: m.data, end: true, broken: !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)}
		}
		if late := d.c.proxy.lateness(d.way); late > 0 {
			m.due = time.Now().Add(late)
		}
		select {
		case d.queue <- m:
		case <-d.c.gone:
			return
		}
		if m.end {
			return
		}
	}
}

// write delivers messages as the faults let it. It drains the queue whatever happens: the reader never waits for nobody.
func (d *pipe) write() {
	for m := range d.queue {
		if wait := time.Until(m.due); !m.due.IsZero() && wait > 0 {
			select {
			case <-time.After(wait):
			case <-d.c.gone:
			}
		}
		d.deliver(m)
	}
}

// verdict is what becomes of a message: n bytes pass, then the action.
type verdict struct {
	n       int
	wait    <-chan struct{} // it is judged again when this is closed
	cut     bool
	forOne  bool // with cut: the client only
	nothing bool // not even its end passes
}

func (d *pipe) deliver(m message) {
	p := d.c.proxy
	for waited := false; ; waited = true {
		p.mu.Lock()
		v := d.judge(&m, waited)
		d.passed += int64(v.n)
		p.mu.Unlock()
		if v.wait != nil {
			select {
			case <-v.wait:
				continue
			case <-d.c.gone:
				return
			}
		}
		if v.n > 0 {
			if _, err := d.to.Write(m.data[:v.n]); err != nil && !v.cut {
				d.failed()
				return
			}
		}
		switch {
		case v.cut:
			p.mu.Lock()
			if v.forOne {
				d.c.cutClient()
			} else {
				d.c.cut()
			}
			p.mu.Unlock()
		case m.end && !v.nothing && m.broken:
			p.mu.Lock()
			d.c.cut()
			p.mu.Unlock()
		case m.end && !v.nothing:
			_ = d.to.CloseWrite() // fails on a closed one only
		}
		return
	}
}

// failed is called when the receiver does not take bytes any more: the sender is told, unless this direction is dead.
func (d *pipe) failed() {
	d.c.proxy.mu.Lock()
	defer d.c.proxy.mu.Unlock()
	if !d.dead {
		d.c.cut()
	}
}

// judge looks at the faults in force. The proxy's lock is held.
func (d *pipe) judge(m *message, waited bool) verdict {
	if d.dead {
		return verdict{nothing: true}
	}
	v := verdict{n: len(m.data)}
	if d.way == ToClient {
		if i := d.c.replyLost(m); i != nil {
			return d.lose(i)
		}
	}
	for _, i := range slices.Clone(d.c.proxy.faults) {
		f := &i.Fault
		switch f.Kind {
		case Partition:
			if !waited {
				i.strike()
			}
			return verdict{wait: d.c.proxy.changed}
		case Drop, Reset:
			if !f.Direction.covers(d.way) {
				continue
			}
			room := i.room(d)
			if room >= int64(v.n) && !(room == 0 && m.end && f.Kind == Drop) {
				continue
			}
			i.strike()
			n := int(min(room, int64(v.n)))
			if f.Kind == Reset {
				return verdict{n: n, cut: true, forOne: f.ClientOnly}
			}
			if d.dead = true; f.Direction == Both {
				d.c.up.dead, d.c.down.dead = true, true
			}
			return verdict{n: n, nothing: true}
		}
	}
	if d.way == ToServer { // it passes
		for _, i := range d.c.proxy.faults {
			if i.Fault.Kind == LoseReply {
				i.mark(d.c, m)
			}
		}
	}
	return v
}

// mark notes that the reply to m will be lost, when m is what the fault waits for.
func (i *Injected) mark(c *conn, m *message) {
	if !m.what.matches(&i.Fault) {
		return
	}
	if i.skipped < i.Fault.Skip {
		i.skipped++
		return
	}
	if c.proxy.protocol == Postgres {
		c.losing = i
		return
	}
	if c.lost == nil {
		c.lost = map[int32]*Injected{}
	}
	c.lost[m.what.id] = i
}

// replyLost returns the fault that takes this reply, nil if none does. A fault that is over takes none.
func (c *conn) replyLost(m *message) *Injected {
	i := c.losing
	if c.proxy.protocol == Kafka {
		i = c.lost[m.what.id]
		delete(c.lost, m.what.id)
	}
	if i == nil || m.end {
		return nil
	}
	c.losing = nil
	select {
	case <-i.done:
		return nil
	default:
		return i
	}
}

// lose carries the loss of a reply out.
func (d *pipe) lose(i *Injected) verdict {
	i.strike()
	if i.Fault.Cut {
		return verdict{cut: true, forOne: i.Fault.ClientOnly}
	}
	d.c.up.dead, d.c.down.dead = true, true
	return verdict{nothing: true}
}
