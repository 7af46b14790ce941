package netproxy

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Protocol is what a proxy knows of the bytes.
type Protocol int

const (
	Bytes    Protocol = iota // nothing
	Kafka                    // requests and replies of Kafka, by name
	Postgres                 // statements and replies of PostgreSQL, by their text
)

// Proxy forwards connections to a server and breaks them as told. Its methods may be called from any goroutine.
type Proxy struct {
	target   string
	protocol Protocol
	ln       net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	faults  []*Injected
	changed chan struct{} // closed and replaced when a fault ends
	conns   map[*conn]struct{}
	taken   int // connections accepted
	closed  bool
}

// Start listens on a free port of this machine and forwards to target, "host:port". The target need not answer yet.
func Start(target string, protocol Protocol) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("netproxy: %w", err)
	}
	p := &Proxy{target: target, protocol: protocol, ln: ln, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the address to connect to, "host:port".
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Connections returns how many connections are open and how many were accepted so far. A connection that is half-open
// counts as open.
func (p *Proxy) Connections() (open, accepted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns), p.taken
}

// Inject puts a fault in force.
func (p *Proxy) Inject(f Fault) (*Injected, error) {
	if err := f.check(p.protocol); err != nil {
		return nil, err
	}
	i := &Injected{Fault: f, proxy: p, done: make(chan struct{}), began: map[*pipe]int64{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	p.faults = append(p.faults, i)
	for c := range p.conns { // those that are there count from now
		for _, d := range []*pipe{c.up, c.down} {
			if d != nil {
				i.began[d] = d.passed
			}
		}
	}
	if f.For > 0 {
		i.timer = time.AfterFunc(f.For, i.End)
	}
	return i, nil
}

// forget takes a fault out of force, under the lock.
func (p *Proxy) forget(i *Injected) {
	p.faults = slices.DeleteFunc(p.faults, func(x *Injected) bool { return x == i })
	close(p.changed)
	p.changed = make(chan struct{})
}

// Heal ends every fault. Connections that are half-open stay so.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range slices.Clone(p.faults) {
		i.end()
	}
}

// CutAll resets every connection, on both sides.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.cut()
	}
}

// Close ends the proxy, its faults and its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.ln.Close()
	p.Heal()
	p.CutAll()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		nc, err := p.ln.Accept()
		if err != nil {
			return // closed: a listener has no other errors that pass
		}
		c := &conn{proxy: p, client: nc.(*net.TCPConn), gone: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			reset(c.client)
			return
		}
		p.taken++
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.wg.Go(c.run)
	}
}

// admit waits until a new connection may go through. It is false when the connection is refused.
func (p *Proxy) admit(c *conn) bool {
	for held := false; ; held = true {
		p.mu.Lock()
		i := p.partition()
		if i != nil && !held {
			i.strike()
		}
		changed := p.changed
		p.mu.Unlock()
		switch {
		case i == nil:
			return true
		case i.Fault.Refuse:
			return false
		}
		select {
		case <-changed:
		case <-c.gone:
			return false
		}
	}
}

// partition is the partition in force, nil without one.
func (p *Proxy) partition() *Injected {
	for _, i := range p.faults {
		if i.Fault.Kind == Partition {
			return i
		}
	}
	return nil
}

// lateness is how long a message that comes now has to wait.
func (p *Proxy) lateness(d Direction) (sum time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range slices.Clone(p.faults) { // a strike may end one
		if i.Fault.Kind == Delay && i.Fault.Direction.covers(d) {
			sum += i.Fault.Delay
			i.strike()
		}
	}
	return sum
}
