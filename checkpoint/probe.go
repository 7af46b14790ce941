package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Speed is what was measured of a place that checkpoints are written to.
type Speed struct {
	// P50 and P99 are of making 4 KiB durable: an fsync, or an object of a store.
	P50, P99 time.Duration
	Samples  int
	// BytesPerSecond is of writing Bytes and making them durable.
	BytesPerSecond float64
	Bytes          int64
}

const (
	probeSmall = 4 << 10
	probeChunk = 4 << 20
	probeMost  = 256 << 20 // bytes written at most
	probeCalls = 1000      // small writes at most
	probeFew   = 5         // small writes at least, if each takes no longer than a probe
)

// ProbeDisk measures the disk of a directory, which need not exist, for about as long as within says, and removes what it wrote.
// A disk that hangs is waited for.
func ProbeDisk(ctx context.Context, fs vfs.FS, dir string, within time.Duration) (s Speed, err error) {
	var made []string // directories that were not there, the deepest first
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil || fs.PathDir(d) == d {
			break
		}
		made = append(made, d)
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return s, err
	}
	defer func() {
		for _, d := range made {
			_ = fs.Remove(d) // whoever put something into it meanwhile needs it
		}
	}()
	name := fs.PathJoin(dir, "probe-"+NewLineage()+".tmp")
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.Close(), fs.Remove(name)) }()
	return probe(ctx, within, func(p []byte) error {
		if _, err := f.Write(p); err != nil {
			return err
		}
		return f.Sync()
	})
}

// ProbeObjects is ProbeDisk for a store of objects; what it writes is below prefix.
func ProbeObjects(ctx context.Context, o ObjectStore, prefix string, within time.Duration) (s Speed, err error) {
	key := prefix + "probe-" + NewLineage()
	defer func() {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within+10*time.Second)
		defer cancel()
		err = errors.Join(err, o.Remove(rctx, key))
	}()
	return probe(ctx, within, func(p []byte) error { return o.Put(ctx, key, bytes.NewReader(p), int64(len(p))) })
}

// probe measures write, which makes bytes durable: half of the time small pieces, half of it large ones. The bytes are random, so that
// nothing on the way can make them fewer.
func probe(ctx context.Context, within time.Duration, write func(p []byte) error) (s Speed, err error) {
	chunk := make([]byte, probeChunk)
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for i := range chunk {
		chunk[i] = byte(r.Uint32())
	}
	var took []time.Duration
	for began := time.Now(); len(took) < probeCalls; {
		spent := time.Since(began)
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if spent > within || spent > within/2 && len(took) >= probeFew {
			break
		}
		one := time.Now()
		if err := write(chunk[:probeSmall]); err != nil {
			return s, err
		}
		took = append(took, time.Since(one))
	}
	s.Samples, s.P50, s.P99 = len(took), Quantile(took, 50), Quantile(took, 99)
	began := time.Now()
	for s.Bytes < probeMost && time.Since(began) < within/2 {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if err := write(chunk); err != nil {
			return s, err
		}
		s.Bytes += probeChunk
	}
	s.BytesPerSecond = float64(s.Bytes) / max(time.Since(began), time.Microsecond).Seconds()
	return s, nil
}
