package network

import (
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/cmd/streamsql/netproxy"
	"github.com/streamsql/streamsql/tests/harness"
)

// A partition that outlives the transactions of the job: the broker aborts what is open and what waits for its commit. The job
// goes back to a checkpoint before that and is exact, by itself. The shortest timeout that preflight admits is a minute and the
// checkpoint's own times, so this runs in the long run only.
func TestPartitionOutlivesTransactions(t *testing.T) {
	if number(t, faultsEnv, usual) <= usual {
		t.Skipf("takes more than a minute: set $%s to more than %d", faultsEnv, usual)
	}
	t.Parallel()
	k, proxies := ways(t, 1)
	j := start(t, "kafka two-phase", k, 0, proxies[0], `, 'properties.transaction.timeout.ms' = '64000'`,
		"SET 'execution.checkpointing.interval' = '2 s';\nSET 'execution.checkpointing.timeout' = '1500 ms';\n"+
			"SET 'execution.checkpointing.tolerable-failed-checkpoints' = '1000';")
	j.produce(20)
	j.caughtUp()
	prefix := "streamsql-" + j.name
	var outage *netproxy.Injected
	for end := time.Now().Add(patience); outage == nil; {
		if time.Now().After(end) {
			t.Fatal("no transaction stays open")
		}
		if j.produce(20); len(k.OpenTransactions(t, prefix)) == 0 {
			continue
		}
		i, err := proxies[0].Inject(netproxy.Fault{Kind: netproxy.Partition})
		if err != nil {
			t.Fatal(err)
		}
		if outage = i; len(k.OpenTransactions(t, prefix)) == 0 { // its commit was quicker
			outage.End()
			outage = nil
			j.caughtUp()
		}
	}
	j.produce(200)
	for end := time.Now().Add(patience); len(k.OpenTransactions(t, prefix)) > 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the broker does not abort the transactions")
		}
	}
	outage.End()
	j.caughtUp()
	hidden := len(k.Values(t, j.name+"_out", harness.Uncommitted)) - len(k.Values(t, j.name+"_out", harness.Committed))
	if hidden == 0 {
		t.Error("no rows were aborted: this shows nothing")
	}
	t.Logf("%d rows of aborted transactions, %d restarts, went back: %v", hidden, j.restarts(), strings.Contains(j.process.Output(), "going back"))
	j.end()
}
