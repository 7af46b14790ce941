package kafka

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
)

// readVia reads 'properties.connect.via': pairs address=other address. Brokers tell clients where to connect; what they tell
// cannot always be reached, through a tunnel for example.
func (r *propertyReader) readVia(key, value string) {
	r.sec.via = map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(pair), "=")
		for _, addr := range []string{from, to} {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				ok = false
			}
		}
		if !ok {
			r.fail(key, "'%s' is not a pair of addresses", pair).WithHint("write broker:9092=127.0.0.1:19092, pairs separated by commas")
			return
		}
		r.sec.via[from] = to
	}
}

// dialVia connects by the other address, if there is one. With TLS the server must still be the one that was meant.
func (s *security) dialVia(cfg *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: s.dialTimeout}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		to := addr
		if other, ok := s.via[addr]; ok {
			to = other
		}
		c, err := d.DialContext(ctx, network, to)
		if err != nil || cfg == nil {
			return c, err
		}
		own := cfg.Clone()
		if own.ServerName == "" {
			own.ServerName, _, _ = net.SplitHostPort(addr) // it was dialled
		}
		t := tls.Client(c, own)
		hctx, cancel := context.WithTimeout(ctx, s.dialTimeout)
		defer cancel()
		if err := t.HandshakeContext(hctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		return t, nil
	}
}
