package netproxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// request is what is known of a message.
type request struct {
	name string // Kafka: the request's name; PostgreSQL: the statement
	id   int32  // Kafka: correlation id, of requests and replies
	sql  bool
}

// matches reports whether this is the request whose reply f loses.
func (r request) matches(f *Fault) bool {
	if !r.sql {
		return r.name == f.Request
	}
	return begins(r.name, f.Request) && (f.Except == "" || !begins(r.name, f.Except))
}

// begins reports whether a statement begins with these words, in any case.
func begins(statement, words string) bool {
	s := strings.TrimSpace(statement)
	if len(s) < len(words) || !strings.EqualFold(s[:len(words)], words) {
		return false
	}
	return len(s) == len(words) || !isLetter(s[len(words)])
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }

// framing cuts one direction of a connection into messages. What it does not understand it passes on as bytes, from there on.
type framing struct {
	protocol Protocol
	way      Direction
	startup  bool // PostgreSQL: no typed message yet
}

func newFraming(p Protocol, way Direction) *framing {
	return &framing{protocol: p, way: way, startup: p == Postgres}
}

// most bounds a message; longer ones are passed on as bytes.
const most = 128 << 20

// next reads one message. With an error, data is what came before it.
func (f *framing) next(in *bufio.Reader) (message, error) {
	switch f.protocol {
	case Kafka:
		return f.kafka(in)
	case Postgres:
		return f.postgres(in)
	}
	if _, err := in.Peek(1); err != nil {
		return message{}, err
	}
	data := make([]byte, in.Buffered())
	n, err := io.ReadFull(in, data)
	return message{data: data[:n]}, err
}

// plain gives up on messages.
func (f *framing) plain(in *bufio.Reader) (message, error) {
	f.protocol = Bytes
	return f.next(in)
}

// whole reads a message of n bytes.
func whole(in *bufio.Reader, n int) (message, error) {
	data := make([]byte, n)
	got, err := io.ReadFull(in, data)
	return message{data: data[:got]}, err
}

// kafka reads int32 length, and of what follows: a request's int16 key, int16 version, int32 correlation id; a reply's int32
// correlation id.
func (f *framing) kafka(in *bufio.Reader) (message, error) {
	head, err := in.Peek(4)
	if err != nil {
		return rest(in, err)
	}
	n := int64(binary.BigEndian.Uint32(head)) + 4
	if n < 8 || n > most {
		return f.plain(in) // TLS, or nothing of Kafka's
	}
	m, err := whole(in, int(n))
	if err != nil {
		return m, err
	}
	switch {
	case f.way == ToClient:
		m.what.id = int32(binary.BigEndian.Uint32(m.data[4:]))
	case len(m.data) >= 12:
		m.what.name = kmsg.NameForKey(int16(binary.BigEndian.Uint16(m.data[4:])))
		m.what.id = int32(binary.BigEndian.Uint32(m.data[8:]))
	}
	return m, nil
}

// rest is what is left of a message that ended early.
func rest(in *bufio.Reader, err error) (message, error) {
	data := make([]byte, in.Buffered())
	n, _ := io.ReadFull(in, data) // these bytes are here
	return message{data: data[:n]}, err
}

// Codes in the first message of a client of PostgreSQL that are no protocol version.
const (
	sslRequest = 80877103
	gssRequest = 80877104
)

// postgres reads byte type, int32 length. The first message of a client has no type, and the answer to its wish for TLS
// is one byte.
func (f *framing) postgres(in *bufio.Reader) (message, error) {
	if f.startup && f.way == ToServer {
		return f.postgresStartup(in)
	}
	head, err := in.Peek(1)
	if err != nil {
		return message{}, err
	}
	if f.startup { // of the server
		if head[0] == 'S' || head[0] == 'N' || head[0] == 'G' {
			if head[0] != 'N' {
				f.protocol = Bytes // encrypted from here on
			}
			return whole(in, 1)
		}
		f.startup = false
	}
	if head, err = in.Peek(5); err != nil {
		return rest(in, err)
	}
	n := int64(binary.BigEndian.Uint32(head[1:])) + 1
	if n < 5 || n > most {
		return f.plain(in)
	}
	m, err := whole(in, int(n))
	if err == nil && f.way == ToServer {
		m.what = statement(m.data)
	}
	return m, err
}

func (f *framing) postgresStartup(in *bufio.Reader) (message, error) {
	head, err := in.Peek(8)
	if err != nil {
		return rest(in, err)
	}
	n := binary.BigEndian.Uint32(head)
	code := binary.BigEndian.Uint32(head[4:])
	if n < 8 || n > 10_000 { // PostgreSQL's own limit of a startup packet
		return f.plain(in)
	}
	f.startup = code == sslRequest || code == gssRequest
	return whole(in, int(n))
}

// statement finds the text in a Query or Parse message.
func statement(data []byte) request {
	body := data[5:]
	switch data[0] {
	case 'P':
		i := strings.IndexByte(string(body), 0) // the prepared statement's name
		if i < 0 {
			return request{}
		}
		body = body[i+1:]
	case 'Q':
	default:
		return request{}
	}
	text, _, _ := strings.Cut(string(body[:min(len(body), 256)]), "\x00")
	return request{name: text, sql: true}
}
