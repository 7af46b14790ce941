// Package file is the connector 'filesystem': directories of files as tables, read exactly once and written exactly
// once.
//
// A written file has three names, all in the directory it ends up in; readers ignore names that start with a dot:
//
//	Write       .part-L-S-F-W-n.inprogress.LINEAGE      being written
//	PreCommit   .part-L-S-F-W-C-n.pending.LINEAGE       closed, synced, listed in checkpoint C
//	Commit       part-L-S-F-W-C-n                       visible
//
// L is the lineage's first eight characters, S a hash of the sink, F the fencing number of the process, W the subtask,
// n a counter. The name of a pending file holds its checkpoint, and checkpoint ids are never reused, so no two files
// ever want one name. Every part is closed at the barrier: nothing of it is left to truncate after a crash.
//
// A split is a file. Its position is (byte offset, record number, size, checksum of the bytes before the offset), so
// that a file that was replaced or shrunk is an error and not a wrong result.
//
// It imports connectors, connectors/format, checkpoint and the leaves of sql.
package file
