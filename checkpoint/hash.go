package checkpoint

import "github.com/zeebo/xxh3"

// HashKey is the hash of encoded key bytes that decides key groups and probes. It is part of the state format: xxh3-64,
// frozen as version 1.
func HashKey(key []byte) uint64 { return xxh3.Hash(key) }
