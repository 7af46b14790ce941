package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/sql/diag"
)

// A lease says that a live job owns a transactional prefix. It is membership in a consumer group of the prefix's name:
// the broker itself ends it when heartbeats stop, and no topic is needed. The member's metadata tells who it is. A job
// that finds another member is refused; a later incarnation of the same job (equal lineage, larger fence) takes over,
// because the state directory's fence proves that the older one is dead or can no longer publish.
//
// Limits: without READ on the group the check is off (a warning is logged); two runs from copies of one state
// directory count as one job when their fences differ; a killed job of another lineage blocks for leaseSession.
type lease struct {
	group  string
	member string
	gen    int32
	who    holder
	cl     *kgo.Client
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once
}

// holder is the metadata of a member.
type holder struct {
	Job     string `json:"job"`
	Lineage string `json:"lineage"`
	Fence   uint64 `json:"fence"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Started int64  `json:"started"` // Unix ms

	member string // id in the group
}

func (h holder) String() string {
	return fmt.Sprintf("job '%s' (lineage %s) on %s, process %d, since %s", h.Job, h.Lineage, h.Host, h.PID,
		time.UnixMilli(h.Started).UTC().Format(time.RFC3339))
}

// yields reports whether h must give way to other: a later incarnation of the same job.
func (h holder) yields(other holder) bool {
	return h.Lineage == other.Lineage && h.Lineage != "" && (h.Fence < other.Fence || h.PID == other.PID && h.Host == other.Host)
}

const (
	leaseSession   = 10 * time.Second // the broker's group.min.session.timeout.ms is 6 s by default
	leaseHeartbeat = 3 * time.Second
	leaseProtocol  = "streamsql"
	leaseWait      = leaseSession + 3*time.Second // how long a killed owner may still look alive
)

// acquireLease takes the prefix's lease unless the owner has it. It waits a little for an owner that was killed.
func (o *owner) acquireLease(ctx context.Context, log *slog.Logger) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lease != nil {
		return nil
	}
	host, _ := os.Hostname()
	who := holder{Job: o.job.Name, Lineage: o.job.Lineage, Fence: o.job.Fence, Host: host, PID: os.Getpid(), Started: time.Now().UnixMilli()}
	l, err := takeLease(ctx, o.c, o.prefix, who, leaseWait, log)
	if err != nil {
		return err
	}
	o.lease = l
	return nil
}

func leaseGroup(prefix string) string { return prefix + "-owner" }

func takeLease(ctx context.Context, c *client, prefix string, who holder, patience time.Duration, log *slog.Logger) (*lease, error) {
	cl, err := kgo.NewClient(c.opts()...)
	if err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "kafka client cannot be made").Wrap(err)
	}
	l := &lease{group: leaseGroup(prefix), who: who, cl: cl, log: log, done: make(chan struct{})}
	if err := l.take(ctx, prefix, patience); err != nil {
		cl.Close()
		if forbidden(err) {
			log.Warn("kafka: another live job with the same transactional prefix cannot be detected: no READ permission on the group",
				"group", l.group, "prefix", prefix)
			close(l.done)
			l.cancel = func() {}
			return l, nil
		}
		return nil, err
	}
	hctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go l.keep(hctx)
	return l, nil
}

func forbidden(err error) bool {
	return errors.Is(err, kerr.GroupAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// take waits until no other owner is left, joins, and looks again: of two that start at once, the one whose start is
// earlier wins.
func (l *lease) take(ctx context.Context, prefix string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for told := false; ; {
		others, err := leaseHolders(ctx, l.cl, l.group, "")
		if err != nil {
			return err
		}
		rival := l.rival(others)
		if rival == nil {
			for _, h := range others {
				l.leave(ctx, h.member) // earlier incarnations of this job, which may be dead already
			}
			break
		}
		limit := deadline
		if rival.Started == 0 { // the broker tells who members are only once a rebalance is over, and waits that long for dead ones
			limit = deadline.Add(leaseSession)
		}
		if !time.Now().Before(limit) {
			return conflict(prefix, *rival)
		}
		if !told {
			l.log.Warn("kafka: the transactional prefix has an owner; waiting in case it was killed", "prefix", prefix, "owner", rival.String(), "wait", patience)
			told = true
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	if err := l.join(ctx); err != nil {
		return err
	}
	others, err := l.settledHolders(ctx)
	if err != nil {
		return err
	}
	if rival := l.rival(others); rival != nil && rival.before(l.who) {
		l.leave(ctx, l.member)
		return conflict(prefix, *rival)
	}
	return nil
}

// settledHolders are the other members once all of them have told who they are, which takes until the group's
// rebalance ends.
func (l *lease) settledHolders(ctx context.Context) ([]holder, error) {
	for deadline := time.Now().Add(leaseSession); ; {
		others, err := leaseHolders(ctx, l.cl, l.group, l.member)
		strangers := slices.ContainsFunc(others, func(h holder) bool { return h.Started == 0 })
		if err != nil || !strangers || time.Now().After(deadline) {
			return others, err
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (h holder) before(o holder) bool {
	return h.Started < o.Started || h.Started == o.Started && (h.Host < o.Host || h.Host == o.Host && h.PID < o.PID)
}

// rival is a holder that does not give way to l.
func (l *lease) rival(others []holder) *holder {
	for i := range others {
		if !others[i].yields(l.who) {
			return &others[i]
		}
	}
	return nil
}

func conflict(prefix string, h holder) error {
	return diag.New(diag.Conflict, diag.Pos{}, "transactional prefix '%s' is used by another live job", prefix).
		WithDetail("its owner is %s; two jobs with one prefix abort each other's transactions", h.String()).
		WithHint("stop the other job, or give this one its own 'sink.transactional-id-prefix'")
}

// describeGroup asks again while the coordinator is being set up: the first group of a cluster creates its topic.
func describeGroup(ctx context.Context, cl *kgo.Client, group string) (kadm.DescribedGroup, error) {
	for deadline := time.Now().Add(connectTimeout); ; {
		all, err := kadm.NewClient(cl).DescribeGroups(ctx, group)
		g := all[group]
		if err == nil {
			err = g.Err
		}
		var shards *kadm.ShardErrors
		if errors.As(err, &shards) && len(shards.Errs) > 0 {
			err = shards.Errs[0].Err
		}
		if err == nil || errors.Is(err, kerr.GroupIDNotFound) {
			return g, nil
		}
		if !kerr.IsRetriable(err) || time.Now().After(deadline) {
			return g, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return g, err
		}
	}
}

// leaseHolders are the live members of the group, except self.
func leaseHolders(ctx context.Context, cl *kgo.Client, group, self string) ([]holder, error) {
	g, err := describeGroup(ctx, cl, group)
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "kafka does not describe group %s", group).Wrap(err)
	}
	var out []holder
	for _, m := range g.Members {
		if m.MemberID == self {
			continue
		}
		raw, _ := m.Join.Raw()
		var h holder
		if json.Unmarshal(raw, &h) != nil {
			h = holder{Job: "?", Host: m.ClientHost} // a stranger, or one that is still joining
		}
		h.member = m.MemberID
		out = append(out, h)
	}
	return out, nil
}

// join becomes a member. JoinGroup answers MEMBER_ID_REQUIRED first; the first member is the leader and must assign.
func (l *lease) join(ctx context.Context) error {
	meta, err := json.Marshal(l.who)
	if err != nil {
		return err
	}
	for {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.MemberID, req.ProtocolType = l.group, l.member, leaseProtocol
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(leaseSession.Milliseconds()), int32(leaseSession.Milliseconds())
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = leaseProtocol, meta
		req.Protocols = append(req.Protocols, p)
		resp, err := req.RequestWith(ctx, l.cl)
		if err != nil {
			return diag.New(diag.External, diag.Pos{}, "kafka: cannot join group %s", l.group).Wrap(err)
		}
		switch err := kerr.ErrorForCode(resp.ErrorCode); err {
		case nil:
			l.member, l.gen = resp.MemberID, resp.Generation
			err := l.sync(ctx, resp)
			if errors.Is(err, kerr.RebalanceInProgress) {
				continue
			}
			return err
		case kerr.MemberIDRequired:
			l.member = resp.MemberID
		case kerr.UnknownMemberID:
			l.member = ""
		default:
			if !kerr.IsRetriable(err) {
				return diag.New(diag.External, diag.Pos{}, "kafka: cannot join group %s", l.group).Wrap(err)
			}
			if err := sleep(ctx, 200*time.Millisecond); err != nil {
				return err
			}
		}
	}
}

func (l *lease) sync(ctx context.Context, joined *kmsg.JoinGroupResponse) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = l.group, l.member, l.gen
	req.ProtocolType, req.Protocol = kmsg.StringPtr(leaseProtocol), kmsg.StringPtr(leaseProtocol)
	if joined.LeaderID == l.member {
		for _, m := range joined.Members {
			a := kmsg.NewSyncGroupRequestGroupAssignment()
			a.MemberID = m.MemberID
			req.GroupAssignment = append(req.GroupAssignment, a)
		}
	}
	resp, err := req.RequestWith(ctx, l.cl)
	if err != nil {
		return diag.New(diag.External, diag.Pos{}, "kafka: cannot join group %s", l.group).Wrap(err)
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// keep sends heartbeats until released, and joins again when the broker asks for it.
func (l *lease) keep(ctx context.Context) {
	defer close(l.done)
	for sleep(ctx, leaseHeartbeat) == nil {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = l.group, l.member, l.gen
		resp, err := req.RequestWith(ctx, l.cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration):
			if l.takenOver(ctx) {
				l.log.Warn("kafka: a later incarnation of the job took over the transactional prefix", "group", l.group)
				return
			}
			if jerr := l.join(ctx); jerr != nil && ctx.Err() == nil {
				l.log.Warn("kafka: lease of the transactional prefix could not be renewed", "group", l.group, "error", jerr)
			}
		default:
			l.log.Warn("kafka: lease of the transactional prefix could not be renewed", "group", l.group, "error", err)
		}
	}
}

// takenOver reports whether a later incarnation of the job is a member.
func (l *lease) takenOver(ctx context.Context) bool {
	others, err := leaseHolders(ctx, l.cl, l.group, l.member)
	return err == nil && slices.ContainsFunc(others, func(h holder) bool { return l.who.yields(h) && h.Started > l.who.Started })
}

// leave takes a member out of the group.
func (l *lease) leave(ctx context.Context, member string) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = l.group, member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = member
	req.Members = append(req.Members, m)
	_, _ = req.RequestWith(ctx, l.cl) // the session ends by itself otherwise
}

// release gives the lease back.
func (l *lease) release() {
	l.once.Do(func() {
		l.cancel()
		<-l.done
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if l.member != "" {
			l.leave(ctx, l.member)
		}
		l.cl.Close()
	})
}
