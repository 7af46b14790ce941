package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/streamsql/streamsql/sql/diag"
)

// cluster is what must be known of a cluster before transactions are used on it.
type cluster struct {
	id           string
	tv           int8  // finalized transaction.version; 2 = KIP-890 part 2
	maxTimeoutMs int64 // smallest transaction.max.timeout.ms of the brokers, 0 = not readable
	noTxns       string
}

const connectTimeout = 30 * time.Second

// connect makes a client and checks that a broker answers.
func connect(ctx context.Context, c *client, opts ...kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(c.opts(opts)...)
	if err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "kafka client cannot be made").Wrap(err)
	}
	pctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := cl.Ping(pctx); err != nil {
		cl.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e := diag.New(diag.External, diag.Pos{}, "kafka at %s does not answer", strings.Join(c.servers, ",")).Wrap(err)
		if pctx.Err() != nil {
			e.WithDetail("tried for %s", connectTimeout)
		}
		return nil, e.WithRule("SSQL-E604").WithHint("check 'properties.bootstrap.servers', the listener's security settings ('properties.security.protocol') and the network")
	}
	return cl, nil
}

// inspect asks the cluster for its features and limits.
func inspect(ctx context.Context, cl *kgo.Client) (cluster, error) {
	var k cluster
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, cl)
	if err != nil {
		return k, diag.New(diag.External, diag.Pos{}, "kafka does not tell its protocol versions").Wrap(err)
	}
	has := map[int16]int16{}
	for _, a := range versions.ApiKeys {
		has[a.ApiKey] = a.MaxVersion
	}
	for _, need := range []struct {
		key  kmsg.Key
		name string
		min  int16
	}{{kmsg.InitProducerID, "InitProducerId", 1}, {kmsg.AddPartitionsToTxn, "AddPartitionsToTxn", 0}, {kmsg.EndTxn, "EndTxn", 1}, {kmsg.Produce, "Produce", 3}} {
		if v, ok := has[int16(need.key)]; !ok || v < need.min {
			k.noTxns = need.name
		}
	}
	for _, f := range versions.FinalizedFeatures {
		if f.Name == "transaction.version" {
			k.tv = int8(f.MaxVersionLevel)
		}
	}
	adm := kadm.NewClient(cl)
	md, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return k, diag.New(diag.External, diag.Pos{}, "kafka does not list its brokers").Wrap(err)
	}
	k.id = md.Cluster
	// Not being allowed to read broker settings is fine: InitProducerId validates the timeout later.
	configs, err := adm.DescribeBrokerConfigs(ctx, md.Brokers.NodeIDs()...)
	if err == nil {
		for _, rc := range configs {
			for _, c := range rc.Configs {
				if c.Key != "transaction.max.timeout.ms" || c.Value == nil {
					continue
				}
				if v, err := strconv.ParseInt(*c.Value, 10, 64); err == nil && (k.maxTimeoutMs == 0 || v < k.maxTimeoutMs) {
					k.maxTimeoutMs = v
				}
			}
		}
	}
	return k, nil
}

// endTxnOpts pins the EndTxn version that a transaction begun under transaction.version tv must be ended with: the
// broker takes version 5 for TV2's rules (which bump the epoch) whatever is finalized.
func endTxnOpts(tv int8) []kgo.Opt {
	if tv >= 2 {
		return nil
	}
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	return []kgo.Opt{kgo.MaxVersions(v)}
}

// endTxn sends one EndTxn with the stored identity. A nil error is the coordinator's durable word that the transaction
// is ended as asked, provided no newer transaction ran on the id.
func endTxn(ctx context.Context, cl *kgo.Client, t *txnRef, commit bool) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.id, t.pid, t.epoch, commit
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// initProducer aborts whatever is open on id and fences its writers. epoch 0 means nobody used the id before.
func initProducer(ctx context.Context, cl *kgo.Client, id string, timeoutMs int64) (epoch int16, err error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = &id
		req.TransactionTimeoutMillis = int32(timeoutMs)
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return 0, explainInit(err, id, timeoutMs)
		}
		err = kerr.ErrorForCode(resp.ErrorCode)
		if err != kerr.ConcurrentTransactions {
			return resp.ProducerEpoch, explainInit(err, id, timeoutMs)
		}
		if err := sleep(ctx, wait); err != nil {
			return 0, fmt.Errorf("transaction %s is still being ended by the coordinator: %w", id, err)
		}
	}
}

func explainInit(err error, id string, timeoutMs int64) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return diag.New(diag.Config, diag.Pos{}, "kafka refuses the transaction timeout of %d ms", timeoutMs).Wrap(err).
			WithDetail("it is larger than the broker's transaction.max.timeout.ms").
			WithHint("lower 'properties.transaction.timeout.ms', or raise transaction.max.timeout.ms on the broker (default 900000)")
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return diag.New(diag.External, diag.Pos{}, "kafka does not allow transactional id %s", id).Wrap(err).
			WithHint("grant WRITE on the prefixed resource TransactionalId %s", prefixOf(id))
	}
	return diag.New(diag.External, diag.Pos{}, "kafka cannot initialise transactional id %s", id).Wrap(err)
}

// prefixOf cuts the subtask and the slot off a transactional id.
func prefixOf(id string) string {
	for range 2 {
		if i := strings.LastIndexByte(id, '-'); i > 0 {
			id = id[:i]
		}
	}
	return id
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// admins are raw clients, one per EndTxn rule, made when first needed.
type admins struct {
	c       *client
	old, v2 *kgo.Client
}

func (a *admins) get(tv int8) (*kgo.Client, error) {
	p := &a.v2
	if tv < 2 {
		p = &a.old
	}
	if *p == nil {
		cl, err := kgo.NewClient(a.c.opts(endTxnOpts(tv))...)
		if err != nil {
			return nil, diag.New(diag.Config, diag.Pos{}, "kafka client cannot be made").Wrap(err)
		}
		*p = cl
	}
	return *p, nil
}

func (a *admins) close() {
	for _, cl := range []*kgo.Client{a.old, a.v2} {
		if cl != nil {
			cl.Close()
		}
	}
	a.old, a.v2 = nil, nil
}
