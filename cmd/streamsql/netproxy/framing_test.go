package netproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// FuzzFraming: what is not disturbed passes as it is. Whatever a connection carries, in messages or not, its messages together are its
// bytes.
func FuzzFraming(f *testing.F) {
	kafka := binary.BigEndian.AppendUint32(nil, 10)
	kafka = append(kafka, 0, 26, 0, 5, 0, 0, 0, 9, 'x', 'y')
	startup := append(binary.BigEndian.AppendUint32(nil, 9), 0, 3, 0, 0, 0)
	query := append(startup, 'Q', 0, 0, 0, 12, 'C', 'O', 'M', 'M', 'I', 'T', ';', 0)
	tls := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest), startup...)
	for _, in := range [][]byte{kafka, append(kafka, kafka...), query, tls, []byte("SSSS"), {'P', 0, 0, 0, 5, 1}, {0x7f, 0xff, 0xff, 0xff}} {
		for _, p := range []Protocol{Bytes, Kafka, Postgres} {
			f.Add(uint8(p), true, in)
			f.Add(uint8(p), false, in)
		}
	}
	f.Fuzz(func(t *testing.T, protocol uint8, toServer bool, in []byte) {
		way := ToClient
		if toServer {
			way = ToServer
		}
		protocols := []Protocol{Bytes, Kafka, Postgres}
		c := newFraming(protocols[int(protocol)%len(protocols)], way)
		r := bufio.NewReader(bytes.NewReader(in))
		var out []byte
		for {
			m, err := c.next(r)
			if out = append(out, m.data...); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				break
			}
			if len(m.data) == 0 {
				t.Fatal("a message without bytes")
			}
		}
		if !bytes.Equal(out, in) {
			t.Fatalf("%x passes as %x", in, out)
		}
	})
}
