package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// rules name the stage of a function. A sample belongs to the stage of the innermost function that has one, so that what
// a stage spends in libraries and in the allocator is its own; what matches no rule is looked up in others.
var rules = []rule{
	{"encode", regexp.MustCompile(`connectors/format\.(\(\*jsonEncoder\)|\(\*writer\)|\(\*Messages\)|append|Append|needsEscape)`)},
	{"decode", regexp.MustCompile(`connectors/format\.`)},
	{"produce", regexp.MustCompile(`connectors/kafka\.\(\*(writer|slab|slot|txnGroup|committer|sink|lease)\)|kgo\.\(?\*?(sink|recBuf|recBatch|seqRecBatch|promisedRec|producer|produceRequest|compressor)\b|kgo\.\(\*Client\)\.([pP]roduc|finishBatch|finishRecord|doPartition|loadPartsAndPartition|partitionsForTopicProduce)|kgo\.\(\*brokerCxn\)\.write|kmsg\.\(\*Produce`)},
	{"fetch", regexp.MustCompile(`connectors/kafka\.|kgo\.\(?\*?(source|cursor|consumer|consumerSession|fetchRequest|decompressor|ProcessFetchPartitionOpts)\b|kgo\.\(\*Client\)\.[pP]oll|kgo\.(recordToRecord|readRawRecords)|kgo\.\(\*Record\)\.Recycle|kgo\.\(\*brokerCxn\)\.(read|handleResp)|kmsg\.\(\*Fetch`)},
	{"exchange", regexp.MustCompile(`/exec\.\(\*(shipper|channel|pooled|gate)\)|/exec\.(gather|resize)`)},
	{"state", regexp.MustCompile(`streamsql/checkpoint\.|cockroachdb/pebble`)},
	{"compute", regexp.MustCompile(`streamsql/exec/op\.|streamsql/sql/|/exec\.\(\*(KeyEncoder|watermarker)\)|/exec\.\(\*sourceReader\)\.pushMarked|/exec\.latest`)},
}

// others are the stages of samples that match no rule.
var others = []rule{
	{"kafka client", regexp.MustCompile(`franz-go/`)},
	{"runtime of the job", regexp.MustCompile(`streamsql/`)},
	{"garbage collector", regexp.MustCompile(`^runtime\.(gcBgMarkWorker|bgsweep|bgscavenge|gcDrain|gcStart|gcMarkDone)`)},
	{"scheduler and system", regexp.MustCompile(`.`)},
}

type rule struct {
	stage string
	match *regexp.Regexp
}

var stageOrder = []string{"fetch", "decode", "compute", "exchange", "state", "encode", "produce", "kafka client", "runtime of the job", "garbage collector", "scheduler and system"}

// stageOf is the stage of a stack, innermost function first.
func stageOf(stack []string) string {
	for _, set := range [][]rule{rules, others[:len(others)-1]} {
		for _, f := range stack {
			for _, r := range set {
				if r.match.MatchString(f) {
					return r.stage
				}
			}
		}
	}
	return others[len(others)-1].stage
}

// classify adds a profile's samples up by stage, in the order of stageOrder; stages without samples are left out.
func classify(bin, profile string) ([]stage, error) {
	out, err := exec.Command("go", "tool", "pprof", "-traces", bin, profile).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof -traces: %w", err)
	}
	sums, total, err := traces(out)
	if err != nil {
		return nil, err
	}
	var stages []stage
	for _, name := range stageOrder {
		if d := sums[name]; d > 0 {
			stages = append(stages, stage{Name: name, Percent: 100 * float64(d) / float64(total)})
		}
	}
	return stages, nil
}

// traces reads the output of pprof -traces: stacks between rulers, the time before the innermost function.
func traces(out []byte) (sums map[string]time.Duration, total time.Duration, err error) {
	sums = map[string]time.Duration{}
	var stack []string
	var at time.Duration
	end := func() {
		if len(stack) > 0 {
			sums[stageOf(stack)] += at
			total += at
		}
		stack, at = nil, 0
	}
	begun := false
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		line := in.Text()
		if strings.HasPrefix(line, "-----------+") {
			end()
			begun = true
			continue
		}
		f := strings.Fields(line)
		if !begun || len(f) == 0 || strings.HasSuffix(f[0], ":") {
			continue
		}
		if d, err := time.ParseDuration(f[0]); err == nil && len(stack) == 0 && len(f) > 1 {
			at, f = d, f[1:]
		}
		stack = append(stack, f[0])
	}
	end()
	if total == 0 {
		return nil, 0, fmt.Errorf("the profile has no samples")
	}
	return sums, total, nil
}

func TestTraces(t *testing.T) {
	const text = `Type: cpu
Duration: 1s, Total samples = 60ms
-----------+---
      10ms   runtime.memmove
             github.com/streamsql/streamsql/connectors/format.appendJSONString
             github.com/streamsql/streamsql/connectors/format.(*writer).row
             github.com/streamsql/streamsql/connectors/kafka.(*writer).encode
-----------+---
      20ms   runtime.mallocgc
             github.com/streamsql/streamsql/connectors/kafka.(*writer).produce
-----------+---
      20ms   github.com/streamsql/streamsql/connectors/format.parseTimestamp
             github.com/streamsql/streamsql/connectors/kafka.(*rowReader).decodeValues
-----------+---
      10ms   runtime.gcDrain
             runtime.gcBgMarkWorker.func2
`
	sums, total, err := traces([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{"encode": 10e6, "produce": 20e6, "decode": 20e6, "garbage collector": 10e6}
	for name, d := range want {
		if sums[name] != d {
			t.Errorf("%s: %v, want %v", name, sums[name], d)
		}
	}
	if total != 60*time.Millisecond || len(sums) != len(want) {
		t.Errorf("%v of %v in all", sums, total)
	}
	for _, r := range append(slices.Clone(rules), others...) {
		if !slices.Contains(stageOrder, r.stage) {
			t.Errorf("stage %q is not printed", r.stage)
		}
	}
}
