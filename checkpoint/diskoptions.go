package checkpoint

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// DiskOptions are how rows on disk are laid out and read. They are part of no format: whatever they are, the files of earlier
// ones are read. The zero value has the defaults, which suit a solid-state disk.
//
// There is no size of memtables: rows come as sorted files that are ingested, and only the removal of key groups at a restore goes
// through a memtable.
type DiskOptions struct {
	// BlockBytes is the size of blocks before compression: what is read at least. 0 = 4 KiB: keys are hashes, so that a probe of a
	// large table finds every key in another block and decompresses it for that key alone.
	BlockBytes int
	// FileBytes is the least size that compactions make files of; 0 = Pebble's, 2 MiB and twice as much for each level.
	FileBytes int64
	// OpenFiles is how many files a task holds open; 0 = 512.
	OpenFiles int
	// CacheBytes is the size of a block cache beside the common one, shared by those who ask for the same size; at most half of
	// the memory for state. 0 = the common one, of an eighth of the memory and at most 256 MiB.
	CacheBytes int64
}

const (
	defaultBlockBytes = 4 << 10
	defaultOpenFiles  = 512
	pebbleFileBytes   = 2 << 20 // Pebble's target size of files in the first level
)

// l0Files is how many ingested files pile up before they are merged, when compactions are due. Each spans all hashes, so that merging them rewrites
// the level below; reads pass over the files that lack a key by their Bloom filters.
const l0Files = 10

// apply sets what the options say.
func (d *DiskOptions) apply(o *pebble.Options) {
	o.MaxOpenFiles = defaultOpenFiles
	if d.OpenFiles > 0 {
		o.MaxOpenFiles = d.OpenFiles
	}
	block := defaultBlockBytes
	if d.BlockBytes > 0 {
		block = d.BlockBytes
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].BlockSize = block
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
	}
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = max(pebbleFileBytes<<i, d.FileBytes)
	}
}
