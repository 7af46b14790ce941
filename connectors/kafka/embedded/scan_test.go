package embedded

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzScanTxns: a log that a killed process left is read to its end or is an error, whatever it holds.
func FuzzScanTxns(f *testing.F) {
	b := kmsg.RecordBatch{FirstOffset: 5, Length: 49, Magic: 2, Attributes: 0x10, LastOffsetDelta: 1, ProducerID: 7, NumRecords: 2}
	marker := b
	marker.FirstOffset, marker.Attributes, marker.LastOffsetDelta = 7, 0x30, 0
	both := marker.AppendTo(b.AppendTo(nil))
	f.Add(both)
	f.Add(both[:len(both)-3])
	f.Fuzz(func(t *testing.T, log []byte) {
		open := map[int64]openTxn{}
		_, _ = scanTxns(log, open)
		if len(open) > len(log)/12 {
			t.Fatalf("%d transactions in %d bytes", len(open), len(log))
		}
	})
}
