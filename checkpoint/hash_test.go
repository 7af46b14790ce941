package checkpoint

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/tests/short"
)

func wordKey(words ...uint64) (key []byte) {
	for _, w := range words {
		key = binary.LittleEndian.AppendUint64(append(key, 1), w)
	}
	return key
}

// State on disk is found by these hashes: when one changes, so must hashFormat.
func TestHashFrozen(t *testing.T) {
	for _, c := range []struct {
		key  []byte
		want uint64
	}{
		{nil, 0x2d06800538d394c2},
		{[]byte{0}, 0xc44bdff4074eecdb},
		{[]byte("\x01\x03abc"), 0xc06571e6625fa985},
		{wordKey(0), 0xf720ca9ffe90a3e9},
		{wordKey(1), 0x25b6f57d01715b10},
		{append([]byte{0}, wordKey(1)[1:]...), 0x7c00d1a393fe75d9},
		{wordKey(1, 2), 0x64a7ec3543ded4f5},
		{wordKey(2, 1), 0xa7e9d9a789dcc060},
		{wordKey(1, 2, 3), 0xebb056036a7dd42b},
		{wordKey(1, 2, 3, 4), 0x37a4fb9d2edc1629},
	} {
		if got := HashKey(c.key); got != c.want {
			t.Errorf("the hash of %x is %#x, was %#x", c.key, got, c.want)
		}
	}
}

// State with other hashes is refused by name.
func TestOtherHashRefused(t *testing.T) {
	err := (&catalogRecord{Hash: "xxh3-64/1"}).checkHash("chk-7/a-0")
	if diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), `state in "chk-7/a-0" has hashes "xxh3-64/1"`) {
		t.Fatal(err)
	}
	if err := (&catalogRecord{Hash: hashFormat}).checkHash("chk-7/a-0"); err != nil {
		t.Fatal(err)
	}
}

// The hashes of words are those of their bytes.
func TestHashWords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		w, x, y := r.Uint64(), r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64)
		if HashWord(w) != HashKey(wordKey(w)) || HashWords2(w, x) != HashKey(wordKey(w, x)) || HashWords3(w, x, y) != HashKey(wordKey(w, x, y)) {
			t.Fatalf("%x %x %x", w, x, y)
		}
	}
}

// Keys that people have, such as consecutive numbers, hours in milliseconds and pairs of small numbers, are spread over key
// groups and slots as chance would, and every bit of a key changes half of the hash.
func TestHashSpread(t *testing.T) {
	short.OneGoroutine(t)
	const n = 1 << 16
	shapes := map[string]func(i uint64) []byte{
		"consecutive": func(i uint64) []byte { return wordKey(i) },
		"negative":    func(i uint64) []byte { return wordKey(-i) },
		"hours":       func(i uint64) []byte { return wordKey(1_700_000_000_000 + i*3_600_000) },
		"high bits":   func(i uint64) []byte { return wordKey(i << 48) },
		"pairs":       func(i uint64) []byte { return wordKey(i&255, i>>8) },
		"equal pairs": func(i uint64) []byte { return wordKey(i, i) },
		"windows":     func(i uint64) []byte { return wordKey(i>>4, 10_000*(i&15), 10_000*(i&15)+10_000) },
	}
	for name, key := range shapes {
		var groups [KeyGroups]int
		slots := map[uint32]bool{}
		seen := map[uint64]bool{}
		for i := range uint64(n) {
			h := HashKey(key(i))
			groups[KeyGroup(h)]++
			slots[uint32(h)&(2*n-1)] = true
			seen[h] = true
		}
		if len(seen) != n {
			t.Errorf("%s: %d keys have %d hashes", name, n, len(seen))
		}
		chi := 0.0
		for _, k := range groups {
			d := float64(k) - n/KeyGroups
			chi += d * d / (n / KeyGroups)
		}
		if chi > 200 { // 127 degrees of freedom: beyond four deviations
			t.Errorf("%s: key groups are uneven: chi² %.0f", name, chi)
		}
		// Chance fills 2n(1-e^-½) of 2n slots with n keys.
		if got := float64(len(slots)) / (2 * n); got < 0.388 || got > 0.399 {
			t.Errorf("%s: %.4f of the slots are taken, want 0.3935", name, got)
		}
	}
	for size := 1; size <= 3; size++ {
		flips := [64 * 3]int{}
		for i := range uint64(256) {
			words := []uint64{i, i * 7, 3}[:size]
			h := HashKey(wordKey(words...))
			for b := range 64 * size {
				words[b>>6] ^= 1 << (b & 63)
				flips[b] += bits.OnesCount64(h ^ HashKey(wordKey(words...)))
				words[b>>6] ^= 1 << (b & 63)
			}
		}
		for b, k := range flips[:64*size] {
			if mean := float64(k) / 256; mean < 29.5 || mean > 34.5 {
				t.Errorf("%d words: bit %d changes %.1f bits of the hash", size, b, mean)
			}
		}
	}
}
