package checkpoint

// Keyed state. A Table is one subtask's rows of one purpose: key bytes to value bytes. It lives in memory while it
// fits; beyond that, cold chunks of rows are in a file while their index fits (table_cold.go), then all rows are in the
// subtask's Pebble. A barrier writes the changed rows as one segment, or one sorted SST.
//
// The contract is made for batches: an operator hashes and encodes the keys of a whole batch, probes once, and then
// reads and writes values in place.

// Ref addresses a row of a Table during one batch. NoRow means the key is absent.
type Ref int32

// NoRow is the Ref of an absent key.
const NoRow Ref = -1

// Keys are the encoded keys of a batch: key i is Buf[Ends[i-1]:Ends[i]] (Ends[-1] = 0) and has hash Hashes[i] from
// HashKey. Equal keys have equal bytes.
type Keys struct {
	Buf    []byte
	Ends   []int32
	Hashes []uint64
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.Ends) }

// Key is the i-th key's bytes.
func (k *Keys) Key(i int) []byte {
	start := int32(0)
	if i > 0 {
		start = k.Ends[i-1]
	}
	return k.Buf[start:k.Ends[i]]
}

// Reset empties k, keeping its memory.
func (k *Keys) Reset() { k.Buf, k.Ends, k.Hashes = k.Buf[:0], k.Ends[:0], k.Hashes[:0] }

// Table is keyed state. It is used by its subtask's goroutine only. Refs are valid until the next Probe on the table;
// slices returned by Value until the next call that changes the table.
type Table interface {
	// Probe brings the rows of keys into memory and sets refs[i] to the row of key i or NoRow. len(refs) = keys.Len().
	Probe(keys *Keys, refs []Ref) error
	// Insert adds the row of key i after Probe said NoRow (or after an Insert of an equal key in the same batch: then it
	// returns that row). The value has size zero bytes.
	Insert(keys *Keys, i int, size int) (r Ref, created bool, err error)
	// Value is the row's value, to read.
	Value(r Ref) []byte
	// Mutable is the row's value, to change in place; it marks the row changed.
	Mutable(r Ref) []byte
	// MutableRows sets rows[i] to Mutable(refs[i]), for a whole batch; no ref is NoRow. len(rows) = len(refs).
	MutableRows(refs []Ref, rows [][]byte)
	// Set replaces the row's value by a value of any size.
	Set(r Ref, value []byte)
	// Extend makes the row's value n bytes longer, keeps what is there and returns the new end, whose bytes are arbitrary
	// and to be written at once. A value that has to move for that gets memory for room bytes, if those are more.
	Extend(r Ref, n, room int) ([]byte, error)
	// Delete removes the row. r must not be used afterwards.
	Delete(r Ref)
	// Find is a Probe for one more key in the same batch: the Refs and values that are out stay valid.
	Find(hash uint64, key []byte) (Ref, error)
	// Get is a single-key Probe and Value; ok is false when the key is absent. The value is a copy.
	Get(key []byte) (value []byte, ok bool, err error)
	// Put sets a single key.
	Put(key, value []byte) error
	// Remove deletes a single key; absent keys are fine.
	Remove(key []byte) error
	// Scan calls f for every row whose key starts with prefix, in ascending key order, until f returns false. It sees
	// memory and disk. f must not change the table.
	Scan(prefix []byte, f func(key, value []byte) bool) error
	// Visit calls f for every row in no order until f returns false, with no more memory than a row takes. key and value
	// are valid for the call. f must not change the table.
	Visit(f func(key, value []byte) bool) error
	// Len is the number of rows, in memory and on disk.
	Len() int64
	// Reserve counts n more bytes, that the operator holds for rows outside the table, in the job's memory; with n < 0 it
	// gives them back. It reports whether memory is used up: then the operator should put what it holds into the table.
	Reserve(n int64) (full bool)
}

// TableOptions describe a table to open.
type TableOptions struct {
	// Name is unique within the subtask's operator and stable across versions.
	Name string
	// Format names the layout of keys and values; a restore with another Format is refused.
	Format string
	// TTL in milliseconds of processing time since a row was last created or changed; 0 = never expires.
	TTL int64
	// WriteOnce promises that a row is inserted and written in one batch and then never changed or deleted: a barrier does
	// not copy it. Not with a TTL.
	WriteOnce bool
}

// KeyGroups is the number of key groups: units of keyed state and of rescaling. The key group of a row is the top
// seven bits of its key's hash.
const KeyGroups = 128

// KeyGroup is the key group of a hash from HashKey.
func KeyGroup(hash uint64) int { return int(hash >> 57) }

// SubtaskOf is the subtask, of parallelism many, that owns key group g. Subtask i owns a contiguous range.
func SubtaskOf(g, parallelism int) int { return g * parallelism / KeyGroups }
