package checkpoint

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// HashKey is the hash of encoded key bytes that decides key groups and probes. It is part of the state format, see
// hashFormat. Keys of one, two or three fields of nine bytes, which is how integers, times and floats are encoded (see
// exec.KeyEncoder), are hashed as words and tags by HashWord, HashWords2 and HashWords3, which a caller that has the
// words may call itself, all others by xxh3-64.
func HashKey(key []byte) uint64 {
	switch len(key) {
	case wordField:
		return hash2(binary.LittleEndian.Uint64(key[1:]), 0, uint64(key[0]))
	case 2 * wordField:
		return hash2(binary.LittleEndian.Uint64(key[1:]), binary.LittleEndian.Uint64(key[10:]),
			uint64(key[0])|uint64(key[9])<<8|2<<16)
	case 3 * wordField:
		return hash3(binary.LittleEndian.Uint64(key[1:]), binary.LittleEndian.Uint64(key[10:]), binary.LittleEndian.Uint64(key[19:]),
			uint64(key[0])|uint64(key[9])<<8|uint64(key[18])<<16)
	}
	return xxh3.Hash(key)
}

const (
	wordField = 9 // bytes of a word in a key: a tag, 1 for a value that is not NULL, and the word, little endian

	mix0 = 0xa0761d6478bd642f
	mix1 = 0xe7037ed1a0b428db
	mix2 = 0x8ebc6af09c88c6e3
	mix3 = 0x589965cc75374cc3
)

// HashWord is HashKey of the key of one word that is not NULL.
func HashWord(w uint64) uint64 { return hash2(w, 0, 1) }

// HashWords2 is HashKey of the key of two words that are not NULL.
func HashWords2(w, x uint64) uint64 { return hash2(w, x, 2<<16|1<<8|1) }

// HashWords3 is HashKey of the key of three words that are not NULL.
func HashWords3(w, x, y uint64) uint64 { return hash3(w, x, y, 1<<16|1<<8|1) }

// hash2 mixes by two multiplications to 128 bits, as wyhash does for short inputs.
func hash2(w, x, tags uint64) uint64 {
	hi, lo := bits.Mul64(w^mix0, x^mix1)
	hi, lo = bits.Mul64(lo^mix2, hi^mix3^tags)
	return hi ^ lo
}

func hash3(w, x, y, tags uint64) uint64 {
	hi, lo := bits.Mul64(w^mix0, x^mix1)
	return hash2(hi^lo, y, tags<<24)
}
