package exec

import (
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/zeebo/xxh3"
)

// The file of what is in flight at a gate (docs/state-format.md):
//
//	"streamsql-inflight 1\n"
//	channels: count, then per channel port, producing subtask, 8 bytes of shape, watermark, flags (1 idle, 2 catching up)
//	messages: kind, channel, number on the channel from 1, bytes, then rows, a watermark, a status or nothing, then 8 bytes of hash
//	the end: 0xff, per channel the number of its messages, 8 bytes of hash over all before
//
// The shape says which operator made the rows and what their columns are: rows of another plan are refused. Numbers are
// varints; hashes are xxh3-64, little endian, of a message over the bytes from its kind on.
const (
	flightMagic = "streamsql-inflight 1\n"
	flightEnd   = 0xff

	flightIdle     = 1
	flightCatching = 2
)

// flightChannel is a channel as it was when the barrier overtook.
type flightChannel struct {
	port, from     int
	shape          uint64
	wm             Watermark
	idle, catching bool
}

// flight is what was in flight at a gate.
type flight struct {
	channels []flightChannel
	messages []message // input is an index into channels
}

// appendChannels appends the channels of g as they are.
func appendChannels(dst []byte, g *gate) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(g.inputs)))
	for i := range g.inputs {
		in := &g.inputs[i]
		dst = binary.AppendUvarint(dst, uint64(in.port))
		dst = binary.AppendUvarint(dst, uint64(in.from))
		dst = binary.LittleEndian.AppendUint64(dst, in.shape)
		dst = binary.AppendVarint(dst, int64(in.wm))
		flags := byte(0)
		if in.idle {
			flags |= flightIdle
		}
		if in.catching {
			flags |= flightCatching
		}
		dst = append(dst, flags)
	}
	return dst
}

// shapeOf is the shape of the rows on e.
func shapeOf(g *Graph, e Edge) uint64 {
	from := g.Nodes[e.From]
	text := string(from.ID)
	for _, c := range from.Output.Columns {
		text += "\x00" + c.Name + "\x00" + c.Type.String()
	}
	return xxh3.HashString(text)
}

// add records a message.
func (c *capture) add(m *message) {
	c.seq[m.input]++
	begin := len(c.body)
	c.body = append(c.body, byte(m.kind))
	c.body = binary.AppendUvarint(c.body, uint64(m.input))
	c.body = binary.AppendUvarint(c.body, c.seq[m.input])
	// The length is written once it is known, in four bytes.
	c.body = append(c.body, 0, 0, 0, 0)
	at := len(c.body)
	switch m.kind {
	case msgRows:
		c.rows += int64(m.rows.N)
		c.body = appendRows(c.body, m.rows)
	case msgWatermark:
		c.body = binary.AppendVarint(c.body, int64(m.watermark))
	case msgStatus:
		c.body = append(c.body, boolByte(m.idle))
	}
	binary.LittleEndian.PutUint32(c.body[at-4:], uint32(len(c.body)-at))
	c.body = binary.LittleEndian.AppendUint64(c.body, xxh3.Hash(c.body[begin:]))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// file is the whole file.
func (c *capture) file() []byte {
	out := make([]byte, 0, len(flightMagic)+len(c.head)+len(c.body)+16+10*len(c.seq))
	out = append(out, flightMagic...)
	out = append(out, c.head...)
	out = append(out, c.body...)
	out = append(out, flightEnd)
	for _, n := range c.seq {
		out = binary.AppendUvarint(out, n)
	}
	return binary.LittleEndian.AppendUint64(out, xxh3.Hash(out))
}

// flightReader reads a file of what is in flight. The first fault stays: after it, everything is zero.
type flightReader struct {
	b   []byte
	at  int
	err error
}

func (r *flightReader) bad(format string, args ...any) {
	if r.err == nil {
		r.err = diag.New(diag.Data, diag.Pos{}, "in-flight data of the checkpoint is damaged at byte %d: %s", r.at, fmt.Sprintf(format, args...)).
			WithHint("restore an older checkpoint")
	}
}

// bytes takes n bytes.
func (r *flightReader) bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b)-r.at {
		r.bad("it ends %d bytes early", n-(len(r.b)-r.at))
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

func (r *flightReader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *flightReader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.bad("a number is cut off")
		return 0
	}
	r.at += n
	return v
}

func (r *flightReader) varint() int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Varint(r.b[r.at:])
	if n <= 0 {
		r.bad("a number is cut off")
		return 0
	}
	r.at += n
	return v
}

// count is a number of things of which each takes at least one byte.
func (r *flightReader) count() int {
	v := r.uvarint()
	if v > uint64(len(r.b)-r.at) {
		r.bad("%d of something in %d bytes", v, len(r.b)-r.at)
		return 0
	}
	return int(v)
}

// hashed checks the hash of the bytes since begin.
func (r *flightReader) hashed(begin int) {
	end := r.at
	if h := r.bytes(8); h != nil && binary.LittleEndian.Uint64(h) != xxh3.Hash(r.b[begin:end]) {
		r.at = begin
		r.bad("the hash is wrong")
	}
}

// ports tells what rows of a port are now, nil when there is no such port.
type ports func(port int) (rows *types.Schema, shape uint64)

// readFlight decodes a file.
func readFlight(b []byte, now ports) (*flight, error) {
	if len(b) < len(flightMagic) || string(b[:len(flightMagic)]) != flightMagic {
		return nil, diag.New(diag.Data, diag.Pos{}, "in-flight data of the checkpoint begins with %.24q, not with %q", b, flightMagic).
			WithHint("restore with the streamsql version that wrote the checkpoint, or restore an older checkpoint")
	}
	r := &flightReader{b: b, at: len(flightMagic)}
	f := &flight{}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		c := flightChannel{port: r.count(), from: r.count()}
		if shape := r.bytes(8); shape != nil {
			c.shape = binary.LittleEndian.Uint64(shape)
		}
		c.wm = Watermark(r.varint())
		flags := r.byte()
		c.idle, c.catching = flags&flightIdle != 0, flags&flightCatching != 0
		f.channels = append(f.channels, c)
	}
	seq := make([]uint64, len(f.channels))
	for r.err == nil && r.at < len(b) && b[r.at] != flightEnd {
		m := r.message(f.channels, seq, now)
		f.messages = append(f.messages, m)
	}
	if r.byte() != flightEnd {
		r.bad("its end is missing")
	}
	for i, n := range seq {
		if got := r.uvarint(); r.err == nil && got != n {
			r.bad("%d messages of channel %d, not %d", n, i, got)
		}
	}
	r.hashed(0)
	if r.at != len(b) {
		r.bad("bytes behind its end")
	}
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

// message reads the next one, which must be the next of its channel.
func (r *flightReader) message(channels []flightChannel, seq []uint64, now ports) message {
	begin := r.at
	m := message{kind: messageKind(r.byte())}
	m.input = int(min(r.uvarint(), 1<<30))
	n := r.uvarint()
	size := r.bytes(4)
	if r.err != nil {
		return m
	}
	if m.input >= len(channels) {
		r.bad("a message of channel %d of %d", m.input, len(channels))
		return m
	}
	if seq[m.input]++; n != seq[m.input] {
		r.bad("message %d of channel %d where %d is expected", n, m.input, seq[m.input])
		return m
	}
	payload := r.bytes(int(binary.LittleEndian.Uint32(size)))
	if r.hashed(begin); r.err != nil {
		return m
	}
	p := &flightReader{b: payload}
	switch m.kind {
	case msgRows:
		c := channels[m.input]
		schema, shape := now(c.port)
		if schema == nil || shape != c.shape {
			r.err = diag.New(diag.Config, diag.Pos{}, "the checkpoint holds rows in flight that this plan does not have there").
				WithDetail("they were made by another operator or have other columns than the rows of input %d now", c.port).
				WithHint("start with the statement and the settings of the checkpoint, stop with a savepoint, which holds no rows in flight, and change them then")
			return m
		}
		m.rows = p.rows(schema)
	case msgWatermark:
		m.watermark = Watermark(p.varint())
	case msgStatus:
		m.idle = p.byte() != 0
	case msgAfresh:
	default:
		p.bad("a message of kind %d", m.kind)
	}
	if p.at != len(payload) {
		p.bad("%d bytes too many", len(payload)-p.at)
	}
	if p.err != nil {
		r.err = p.err
	}
	return m
}
