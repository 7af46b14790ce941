package planner

import (
	"maps"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// The settings of keyed state on disk. Flink's names hold where their meaning does: Pebble is made after RocksDB.
const (
	keyDiskProfile = "state.backend.rocksdb.predefined-options"
	keyDiskBlock   = "state.backend.rocksdb.block.blocksize"
	keyDiskCache   = "state.backend.rocksdb.block.cache-size"
	keyDiskFile    = "state.backend.rocksdb.compaction.level.target-file-size-base"
	keyDiskOpen    = "state.backend.rocksdb.files.open"
)

// diskKeys are what a profile may set, in the order in which they are shown.
var diskKeys = []string{keyDiskBlock, keyDiskFile, keyDiskOpen, keyDiskCache}

// diskProfiles are the values that 'state.backend.rocksdb.predefined-options' puts in the place of the defaults, after Flink's
// PredefinedOptions. What SET or -D says of a key wins. On a disk that has to move its head a read costs the same whether it
// fetches 4 or 32 KiB, and few long files beat many short ones; a solid-state disk only needs its files open. Flink's number of
// background jobs has no counterpart: every task has a Pebble of its own, which compacts one thing at a time.
var diskProfiles = map[string]map[string]string{
	"DEFAULT":                          {},
	"FLASH_SSD_OPTIMIZED":              {keyDiskOpen: "4096"},
	"SPINNING_DISK_OPTIMIZED":          {keyDiskBlock: "32 kb", keyDiskFile: "64 mb", keyDiskOpen: "4096"},
	"SPINNING_DISK_OPTIMIZED_HIGH_MEM": {keyDiskBlock: "128 kb", keyDiskFile: "256 mb", keyDiskOpen: "4096", keyDiskCache: "256 mb"},
}

func init() {
	settings[keyDiskProfile] = setting{def: "DEFAULT", values: slices.Sorted(maps.Keys(diskProfiles)),
		doc: "other defaults for keyed state that memory has no room for, which settings of their own override: " + diskProfileDoc()}
	settings[keyDiskBlock] = setting{typ: memorySetting, def: "4 kb", min: 1 << 10, max: 4 << 20, doc: "size of blocks of state on disk before compression: what a read fetches at least"}
	settings[keyDiskFile] = setting{typ: memorySetting, def: "2 mb", min: 1 << 20, max: 4 << 30, doc: "least size that compactions make files of (Flink's default is 64 mb); lower levels have larger ones"}
	settings[keyDiskOpen] = setting{typ: intSetting, def: "512", min: 64, doc: "files of state that a task holds open (Flink's default is all)"}
	settings[keyDiskCache] = setting{typ: memorySetting, def: "", min: 64 << 10, max: 1 << 40,
		doc: "block cache of state on disk, shared by jobs that say the same; part of --memory, and at most half of it. Unset: one for all jobs, an eighth of --memory and at most 256 mb"}
	const memtables = "rows on disk come as sorted files, not through memtables"
	for _, k := range []string{"state.backend.rocksdb.writebuffer.size", "state.backend.rocksdb.writebuffer.count", "state.backend.rocksdb.writebuffer.number-to-merge"} {
		settings[k] = setting{def: "", notice: memtables, doc: "no effect: " + memtables}
	}
}

// diskProfileDoc lists the profiles for the page of settings.
func diskProfileDoc() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(diskProfiles)) {
		if values := diskProfiles[name]; len(values) > 0 {
			var set []string
			for _, k := range diskKeys {
				if v, ok := values[k]; ok {
					set = append(set, strings.TrimPrefix(k, "state.backend.rocksdb.")+" "+v)
				}
			}
			parts = append(parts, name+" = "+strings.Join(set, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// profileValue is what the session's profile of the disk says of key. The caller holds the lock.
func (c *Config) profileValue(key string) (string, bool) {
	name, ok := c.values[keyDiskProfile]
	if !ok {
		return "", false
	}
	v, ok := diskProfiles[strings.ToUpper(strings.TrimSpace(name))][key]
	return v, ok
}

func (c *Config) memory(key string) int64 {
	v, _ := c.Get(key)
	n, _ := connectors.ParseMemory(v) // Set has checked it; unset = 0
	return n
}

// disk is how keyed state on disk is laid out.
func (c *Config) disk() checkpoint.DiskOptions {
	return checkpoint.DiskOptions{
		BlockBytes: int(c.memory(keyDiskBlock)), FileBytes: c.memory(keyDiskFile),
		OpenFiles: c.Int(keyDiskOpen), CacheBytes: c.memory(keyDiskCache),
	}
}

// StateText is how keyed state on disk is laid out and from where that comes, "" where the session says nothing of it.
func (plan *Plan) StateText() string {
	c := plan.conf
	if !slices.ContainsFunc(append([]string{keyDiskProfile}, diskKeys...), c.IsSet) {
		return ""
	}
	name := c.Enum(keyDiskProfile)
	return c.origins(diskKeys, "profile "+name, diskProfiles[name])
}
