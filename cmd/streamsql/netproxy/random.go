package netproxy

import (
	"math/rand/v2"
	"time"
)

// Replies are the requests whose lost reply hurts most, by protocol: nobody knows then whether the output is committed.
func Replies(p Protocol) []string {
	switch p {
	case Kafka:
		return []string{"EndTxn", "Produce", "InitProducerId", "AddPartitionsToTxn", "ListOffsets", "Fetch", "FindCoordinator", "Metadata"}
	case Postgres:
		return []string{"COMMIT", "COMMIT PREPARED", "PREPARE TRANSACTION", "INSERT INTO", "BEGIN", "COPY", "SELECT"}
	}
	return nil
}

// Random draws a fault for a proxy of protocol p. The same state of r gives the same fault. Each is over after longest at
// the latest; what it broke may stay broken.
func Random(r *rand.Rand, p Protocol, longest time.Duration) Fault {
	ways := []Direction{Both, ToServer, ToClient}
	f := Fault{For: longest}
	if replies := Replies(p); len(replies) > 0 && r.IntN(5) < 2 {
		f.Kind, f.Times, f.Skip = LoseReply, 1, r.IntN(3)
		// The first are the dearest.
		f.Request = replies[min(r.IntN(len(replies)), r.IntN(len(replies)))]
		f.Cut = r.IntN(2) == 0
		f.ClientOnly = f.Cut && r.IntN(2) == 0
		return f
	}
	switch f.Direction = ways[r.IntN(len(ways))]; r.IntN(4) {
	case 0:
		f.Kind, f.Delay = Delay, time.Duration(20+r.IntN(981))*time.Millisecond
	case 1:
		f.Kind, f.Direction, f.Refuse = Partition, Both, r.IntN(2) == 0
		f.For = longest/4 + time.Duration(r.Int64N(int64(longest)*3/4+1))
	case 2:
		f.Kind, f.Times, f.After = Reset, 1+r.IntN(3), int64(r.IntN(2000))
		f.ClientOnly = r.IntN(3) == 0
	default:
		f.Kind, f.Times, f.After = Drop, 1, int64(r.IntN(2000))
	}
	return f
}
