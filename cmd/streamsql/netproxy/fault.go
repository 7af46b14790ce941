package netproxy

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Kind is what a fault does to connections.
type Kind int

const (
	// Delay lets every byte wait for Fault.Delay. The throughput stays.
	Delay Kind = iota
	// Partition lets bytes wait until the fault ends, as TCP's own repetition does across an outage; new connections wait too, or
	// are refused with Fault.Refuse.
	Partition
	// Drop lets everything behind the first Fault.After bytes vanish, also the end of the connection: it is half-open from
	// then on, and stays so when the fault has ended, as behind a firewall that forgot it.
	Drop
	// Reset breaks a connection (RST) behind the first Fault.After bytes.
	Reset
	// LoseReply lets the server carry out a request that Fault.Request names, and loses its reply: the connection is half-open from
	// then on, or is reset with Fault.Cut.
	LoseReply
)

func (k Kind) String() string {
	return [...]string{"delay", "partition", "drop", "reset", "lose reply"}[k]
}

// Direction is the way of the bytes that a fault looks at.
type Direction int

// Both directions are meant unless a fault says otherwise.
const (
	Both Direction = iota
	ToServer
	ToClient
)

func (d Direction) String() string {
	return [...]string{"both ways", "to the server", "to the client"}[d]
}

func (d Direction) covers(x Direction) bool { return d == Both || d == x }

// Fault is one disturbance. The zero value of each field is the usual case.
type Fault struct {
	Kind      Kind
	Direction Direction     // of Delay, Drop and Reset. Partition is both ways, a reply goes to the client
	Delay     time.Duration // of Delay
	After     int64         // Drop, Reset: bytes of a connection and direction that still pass, counted from the injection
	Refuse    bool          // Partition: new connections are reset at once instead of left waiting
	Cut       bool          // LoseReply: the connection is reset when the reply comes
	// ClientOnly is for Reset, and LoseReply with Cut: only the client is told. The server's side stays open, with what it
	// holds for that session, until the server ends it or the proxy closes.
	ClientOnly bool
	// Request is whose reply LoseReply loses. Kafka: the request's name in the protocol, such as EndTxn. PostgreSQL: how a statement
	// begins, in any case, such as COMMIT PREPARED; a statement that goes on with a letter behind it does not match.
	Request string
	Except  string        // LoseReply, PostgreSQL: not those that begin with this
	Skip    int           // LoseReply: matching requests that are spared first
	Times   int           // Drop, Reset, LoseReply: connections that are struck before the fault ends; 0 is no limit
	For     time.Duration // ends the fault at the latest; 0 is no limit
}

// String says in a line what the fault does.
func (f Fault) String() string {
	var b strings.Builder
	switch b.WriteString(f.Kind.String()); f.Kind {
	case Delay:
		fmt.Fprintf(&b, " of %v %s", f.Delay, f.Direction)
	case Partition:
		if f.Refuse {
			b.WriteString(", new connections refused")
		}
	case Drop, Reset:
		fmt.Fprintf(&b, " after %d bytes %s", f.After, f.Direction)
	case LoseReply:
		fmt.Fprintf(&b, " to %s", f.Request)
		if f.Skip > 0 {
			fmt.Fprintf(&b, " behind %d", f.Skip)
		}
		b.WriteString(map[bool]string{true: ", reset", false: ", half-open"}[f.Cut])
	}
	if f.ClientOnly {
		b.WriteString(", the server not told")
	}
	if f.Times > 0 {
		fmt.Fprintf(&b, ", %d times", f.Times)
	}
	if f.For > 0 {
		fmt.Fprintf(&b, ", for %v", f.For)
	}
	return b.String()
}

// check refuses what a proxy for protocol p cannot do.
func (f Fault) check(p Protocol) error {
	switch {
	case f.Kind < Delay || f.Kind > LoseReply:
		return fmt.Errorf("netproxy: unknown kind of fault %d", int(f.Kind))
	case f.Kind == LoseReply && p == Bytes:
		return fmt.Errorf("netproxy: a reply can be lost only where the proxy knows the protocol")
	case f.Kind == LoseReply && f.Request == "":
		return fmt.Errorf("netproxy: the fault does not say whose reply is lost")
	case f.Kind == Delay && f.Delay <= 0:
		return fmt.Errorf("netproxy: a delay of %v", f.Delay)
	case f.After < 0 || f.Skip < 0 || f.Times < 0 || f.For < 0:
		return fmt.Errorf("netproxy: a negative number in %v", f)
	}
	return nil
}

// Injected is a fault in force. Its methods may be called from any goroutine.
type Injected struct {
	Fault Fault
	proxy *Proxy
	timer *time.Timer
	once  sync.Once
	done  chan struct{}

	// Under the proxy's lock.
	hits    int
	skipped int
	began   map[*pipe]int64 // bytes that had passed each direction of each connection when the fault first saw it
}

// Hits returns how often the fault has struck: connections for Drop, Reset and LoseReply, messages for Delay and Partition.
func (i *Injected) Hits() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.hits
}

// Done is closed when the fault is over.
func (i *Injected) Done() <-chan struct{} { return i.done }

// End ends the fault. What it has broken stays broken.
func (i *Injected) End() {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	i.end()
}

// end is End under the lock.
func (i *Injected) end() {
	i.once.Do(func() {
		if i.timer != nil {
			i.timer.Stop()
		}
		i.proxy.forget(i)
		close(i.done)
	})
}

// strike counts. It ends the fault when it has struck often enough.
func (i *Injected) strike() {
	i.hits++
	if i.Fault.Times > 0 && i.hits >= i.Fault.Times {
		i.end()
	}
}

// room is how many bytes of a pipe may still pass.
func (i *Injected) room(d *pipe) int64 {
	from, seen := i.began[d]
	if !seen {
		from = d.passed
		i.began[d] = from
	}
	return max(0, from+i.Fault.After-d.passed)
}
