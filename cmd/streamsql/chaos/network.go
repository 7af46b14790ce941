package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/cmd/streamsql/netproxy"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/connectors/postgres"
)

// longestOutage bounds how long a fault of the network lasts, and healing how long connections that it broke may stay so
// before they are reset: their peers cannot notice by themselves, since this machine answers for them.
const (
	longestOutage = 2 * time.Second
	healing       = 15 * time.Second
	troubles      = 4 // faults, one after the other, until one has struck
)

// network is what stands between the jobs of a trial and the systems of their tables. The check itself goes by the straight way.
type network struct {
	lines   []line
	edits   map[string][]edit // of tables, by name
	direct  []string          // tables that no proxy stands before, with the reason
	targets map[string]int    // line by address
}

// line is the way to one server.
type line struct {
	*netproxy.Proxy
	target   string
	protocol netproxy.Protocol
}

// connect puts proxies before every broker and database.
func (r *runner) connect(ctx context.Context) (*network, error) {
	n := &network{edits: map[string][]edit{}, targets: map[string]int{}}
	var tables []*catalog.Table
	for _, x := range r.job.sources {
		tables = append(tables, x.table)
	}
	for _, k := range r.job.sinks {
		tables = append(tables, k.table)
	}
	for _, t := range tables {
		var err error
		switch t.Connector() {
		case "kafka", "upsert-kafka":
			err = n.kafka(ctx, t, r.o.Embedded)
		case "jdbc", "postgres":
			err = n.postgres(ctx, t)
		}
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	return n, nil
}

func (n *network) proxy(target string, p netproxy.Protocol) (addr string, err error) {
	i, ok := n.targets[target]
	if !ok {
		l := line{target: target, protocol: p}
		if l.Proxy, err = netproxy.Start(target, p); err != nil {
			return "", err
		}
		i = len(n.lines)
		n.lines, n.targets[target] = append(n.lines, l), i
	}
	return n.lines[i].Addr(), nil
}

// kafka leads every address that a client of the table's cluster can come to know through a proxy.
func (n *network) kafka(ctx context.Context, t *catalog.Table, embedded string) error {
	cl, err := kafka.Dial(ctx, t, embedded)
	if err != nil {
		return err
	}
	defer cl.Close()
	md, err := kadm.NewClient(cl).BrokerMetadata(ctx)
	if err != nil {
		return fmt.Errorf("table %s: its brokers are not known: %w", t.Name, err)
	}
	servers, ok := t.Options.Get("properties.bootstrap.servers")
	if !ok {
		servers = embedded
	}
	var addrs []string
	for s := range strings.SplitSeq(servers, ",") {
		if _, rest, ok := strings.Cut(s, "://"); ok {
			s = rest
		}
		addrs = append(addrs, strings.TrimSpace(s))
	}
	for _, b := range md.Brokers {
		addrs = append(addrs, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	protocol := netproxy.Kafka
	if p, _ := t.Options.Get("properties.security.protocol"); strings.HasSuffix(strings.ToUpper(p), "SSL") {
		protocol = netproxy.Bytes
	}
	slices.Sort(addrs)
	var via []string
	for _, a := range slices.Compact(addrs) {
		to, err := n.proxy(a, protocol)
		if err != nil {
			return err
		}
		via = append(via, a+"="+to)
	}
	n.edits[t.Name] = []edit{{"properties.connect.via", strings.Join(via, ",")}}
	return nil
}

// postgres changes the address in the table's URL. With TLS the server's name is part of what is checked: there it stays.
func (n *network) postgres(ctx context.Context, t *catalog.Table) error {
	conn, _, err := postgres.Dial(ctx, t, nil)
	if err != nil {
		return err
	}
	c := conn.Config()
	_ = conn.Close(ctx)
	text, _ := t.Options.Get("url")
	plain, jdbc := strings.CutPrefix(text, "jdbc:")
	u, err := url.Parse(plain)
	if err != nil || u.Host == "" || strings.Contains(u.Host, ",") || c.TLSConfig != nil {
		n.direct = append(n.direct, "the network to table "+t.Name+": its URL names several hosts, none, or TLS")
		return nil
	}
	if u.Host, err = n.proxy(net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), netproxy.Postgres); err != nil {
		return err
	}
	if plain = u.String(); jdbc {
		plain = "jdbc:" + plain
	}
	n.edits[t.Name] = []edit{{"url", plain}}
	return nil
}

func (n *network) each(do func(*netproxy.Proxy)) {
	for _, l := range n.lines {
		do(l.Proxy)
	}
}

func (n *network) close() error {
	var errs []error
	n.each(func(p *netproxy.Proxy) { errs = append(errs, p.Close()) })
	return errors.Join(errs...)
}

// disturb breaks connections of a process at work, heals the network, and waits until the jobs have ended.
func (u *run) disturb(ctx context.Context, f *fault) (done bool, err error) {
	n := u.r.net
	p, err := u.launch(ctx, launch{})
	if err != nil {
		return false, err
	}
	defer p.kill()
	ended, err := u.reached(ctx, p, f)
	if err != nil {
		return false, err
	}
	hits := 0
	// A fault may find nothing to break, such as a request that is not made; the next one follows then.
	rnd := f.rand()
	for i := 0; i < troubles && !ended && hits == 0 && err == nil; i++ {
		l := n.lines[rnd.IntN(len(n.lines))]
		what := netproxy.Random(rnd, l.protocol, longestOutage)
		u.where("at %.0f %%, to %s: %s", 100*f.at, l.target, what)
		struck, err := l.Inject(what)
		if err != nil {
			return false, err
		}
		if ended, err = p.awaitEnd(ctx, longestOutage/troubles); err != nil {
			return false, err
		}
		hits = struck.Hits()
	}
	if err == nil && !ended {
		ended, err = p.awaitEnd(ctx, longestOutage)
	}
	if err == nil && !ended {
		n.each((*netproxy.Proxy).Heal)
		ended, err = p.awaitEnd(ctx, healing)
	}
	if err == nil && !ended {
		n.each((*netproxy.Proxy).CutAll)
		_, err = p.awaitEnd(ctx, u.r.o.Timeout)
	}
	n.each((*netproxy.Proxy).Heal)
	if err != nil {
		return false, err
	}
	if hits > 0 {
		u.out.Injected++
	} else {
		u.out.Missed++
	}
	return u.over(p)
}
