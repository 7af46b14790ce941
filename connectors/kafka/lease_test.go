package kafka

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/sql/diag"
)

// describing makes the broker answer with what it returns: members of the group and their metadata. A member without metadata is how
// a broker shows one while the group rebalances. It is asked with the number of the question, from 1 on; nil leaves the answer to the broker.
func describing(e *env, answer func(n int64) map[string]*holder) (asked *atomic.Int64) {
	asked = &atomic.Int64{}
	e.fake.ControlKey(int16(kmsg.DescribeGroups), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		e.fake.KeepControl()
		members := answer(asked.Add(1))
		if members == nil {
			return nil, nil, false
		}
		resp := kreq.ResponseKind().(*kmsg.DescribeGroupsResponse)
		g := kmsg.NewDescribeGroupsResponseGroup()
		g.Group, g.State, g.ProtocolType, g.Protocol = kreq.(*kmsg.DescribeGroupsRequest).Groups[0], "PreparingRebalance", leaseProtocol, leaseProtocol
		for id, h := range members {
			m := kmsg.NewDescribeGroupsResponseGroupMember()
			m.MemberID, m.ClientHost = id, "/192.0.2.1"
			if h != nil {
				m.ProtocolMetadata, _ = json.Marshal(h)
			}
			g.Members = append(g.Members, m)
		}
		resp.Groups = append(resp.Groups, g)
		return resp, nil, true
	})
	return asked
}

// A broker names the members of a group only once its rebalance is over. An owner without a name is waited for beyond the patience
// for owners that are alive, and then judged by its name; one that has no name in the end is a rival.
func TestLeaseWaitsForNames(t *testing.T) {
	started := time.Now().UnixMilli()
	me := holder{Job: "j", Lineage: "l", Fence: 2, Host: "h", PID: 1, Started: started}
	earlier := &holder{Job: "j", Lineage: "l", Fence: 1, Host: "h", PID: 2, Started: started - 1000}
	other := &holder{Job: "other", Lineage: "o", Fence: 1, Host: "far", PID: 3, Started: started - 1000}
	younger := &holder{Job: "other", Lineage: "o", Fence: 1, Host: "far", PID: 3, Started: started + 1000}
	nameless := map[string]*holder{"m": nil}
	for _, c := range []struct {
		name   string
		answer func(n int64) map[string]*holder
		rival  string // of the refusal, "" when the lease is taken
		asked  int64  // at least
	}{
		{"gone in the end", func(n int64) map[string]*holder {
			if n <= 3 {
				return nameless
			}
			return nil
		}, "", 4},
		{"the job's own", func(n int64) map[string]*holder {
			switch {
			case n <= 3:
				return nameless
			case n == 4:
				return map[string]*holder{"m": earlier}
			}
			return nil
		}, "", 4},
		{"another job's", func(n int64) map[string]*holder {
			if n <= 3 {
				return nameless
			}
			return map[string]*holder{"m": other}
		}, "job 'other'", 4},
		{"of the same moment, earlier", func(n int64) map[string]*holder {
			switch {
			case n == 1:
				return map[string]*holder{}
			case n <= 3:
				return nameless
			}
			return map[string]*holder{"m": other}
		}, "job 'other'", 4},
		{"of the same moment, later", func(n int64) map[string]*holder {
			switch {
			case n == 1:
				return map[string]*holder{}
			case n <= 3:
				return nameless
			}
			return map[string]*holder{"m": younger}
		}, "", 4},
		{"never named", func(n int64) map[string]*holder { return nameless }, "job '?'", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "never named" && testing.Short() {
				t.Skip("skipping in short mode: takes a session's timeout")
			}
			t.Parallel()
			e := fake(t, 2)
			asked := describing(e, c.answer)
			s := openSink(t, e.table(e.topic(t, 1), idCols), "s", 1, job("j"))
			l, err := takeLease(testCtx(t), s.c, "p", me, 0, s.log)
			if err == nil {
				l.release()
			}
			switch {
			case c.rival == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.rival != "":
				var d *diag.Error
				if !asDiag(err, &d) || d.Code != diag.Conflict || !strings.Contains(d.Detail, c.rival) {
					t.Errorf("got %v, want a conflict with %s", err, c.rival)
				}
			}
			if n := asked.Load(); n < c.asked {
				t.Errorf("the broker was asked for the owners %d times, want %d", n, c.asked)
			}
		})
	}
}
