package op

import (
	"math"
	"slices"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// How rows of a temporalJoin find their versions.

// joinWaiting is join for rows that have waited.
func (j *temporalJoin) joinWaiting(b *batch.Batch, times []int64) error {
	j.enc[0].Encode(b, &j.keys)
	for len(j.all) < b.N {
		j.all = append(j.all, int32(len(j.all)))
	}
	return j.join(b, j.all[:b.N], times)
}

// join emits what left rows make: those at the given places among the rows of b that count, all of which have keys and times.
func (j *temporalJoin) join(b *batch.Batch, places []int32, times []int64) error {
	m := &j.match
	m.rows, m.versions, j.misses = resize(m.rows, len(places)), resize(m.versions, len(places)), j.misses[:0]
	j.cache.begin()
	for k, i := range places {
		row, ok := j.cache.at(j.keys.Hashes[i], j.keys.Key(int(i)), times[i])
		m.rows[k], m.versions[k] = int32(b.Row(int(i))), row
		if !ok {
			j.misses = append(j.misses, int32(k))
		}
	}
	if len(j.misses) > 0 {
		if err := j.findVersions(places, times); err != nil {
			return err
		}
	}
	missing := slices.Contains(m.versions, noVersion)
	if missing && !j.spec.Outer {
		m.dropMissing()
	}
	return j.emit(b, missing && j.spec.Outer)
}

// findVersions finds versions in state that the cache does not have.
func (j *temporalJoin) findVersions(places []int32, times []int64) error {
	j.missKeys.Reset()
	for _, k := range j.misses {
		i := places[k]
		appendKey(&j.missKeys, j.keys.Key(int(i)), j.keys.Hashes[i])
	}
	if err := j.versions.probe(&j.missKeys); err != nil {
		return err
	}
	j.found = j.found[:0]
	first := j.cache.rows.Len()
	for x, k := range j.misses {
		t := times[places[k]]
		hash, key := j.missKeys.Hashes[x], j.missKeys.Key(x)
		if row, ok := j.cache.at(hash, key, t); ok { // of an earlier row of the batch
			j.match.versions[k] = row
			continue
		}
		version, from, to, err := j.versionAt(j.versions.at(x), t)
		if err != nil {
			return err
		}
		row := int32(noVersion)
		if version != nil {
			row = int32(first + len(j.found))
			j.found = append(j.found, version)
			j.cache.texts += len(version)
		}
		j.cache.put(hash, key, from, to, row)
		j.match.versions[k] = row
	}
	if err := j.codec.decode(j.found, j.cache.rows.Cols); err != nil {
		j.cache.reset()
		return err
	}
	j.cache.rows.RowsDone(len(j.found))
	clear(j.found)
	return nil
}

// versionAt is the newest version not later than time, nil if there is none or it is a deletion, and the span of time it is
// valid in.
func (j *temporalJoin) versionAt(versions bucket, time int64) (version []byte, from, to int64, err error) {
	j.sub = orderedTime(j.sub[:0], time+1)
	sub, val, next, ok, err := versions.around(j.sub)
	from, to = math.MinInt64, math.MaxInt64
	if next != nil {
		to = fromOrderedTime(next)
	}
	if !ok || err != nil {
		return nil, from, to, err
	}
	from = fromOrderedTime(sub)
	if types.RowKind(val[0]).IsRetract() {
		return nil, from, to, nil
	}
	return val[1:], from, to, nil
}

// dropMissing takes the rows out that have no version.
func (m *temporalMatch) dropMissing() {
	n := 0
	for k, v := range m.versions {
		if v != noVersion {
			m.rows[n], m.versions[n] = m.rows[k], v
			n++
		}
	}
	m.rows, m.versions = m.rows[:n], m.versions[:n]
}

// emit emits the rows of j.match, of b: its columns as they are and beside them those of the versions.
func (j *temporalJoin) emit(b *batch.Batch, missing bool) error {
	if len(j.match.rows) == 0 {
		return nil
	}
	j.fill(b, missing)
	if j.filter != nil {
		if err := j.test(b); err != nil {
			return err
		}
	}
	return j.emitter.Emit(&j.out)
}

// fill makes out of j.match; missing tells whether versions are missing.
func (j *temporalJoin) fill(b *batch.Batch, missing bool) {
	m := &j.match
	j.cache.rows.Finish()
	for k, v := range j.right {
		j.valid[k] = scatter(v, j.cache.rows.Cols[k], m.rows, m.versions, b.N, missing, j.valid[k])
	}
	j.out.N, j.out.Kinds, j.out.Sel = b.N, b.Kinds, m.rows
	if len(m.rows) == b.N {
		j.out.Sel = nil
	}
	j.out.Cols = append(append(j.out.Cols[:0], b.Cols...), j.right...)
}

// test takes the versions away that do not fulfil the condition, and of an inner join the rows.
func (j *temporalJoin) test(b *batch.Batch) error {
	m := &j.match
	j.tested = j.tested[:0]
	for k, v := range m.versions {
		if v >= 0 {
			j.tested = append(j.tested, m.rows[k])
		}
	}
	j.out.Sel = j.tested
	kept, err := j.filter.Apply(&j.out)
	if err != nil {
		return err
	}
	if !j.spec.Outer {
		j.out.Sel = kept.Sel
		return nil
	}
	j.tested = append(j.tested[:0], kept.Sel...)
	next := j.tested
	for k, r := range m.rows {
		if len(next) > 0 && next[0] == r {
			next = next[1:]
		} else {
			m.versions[k] = noVersion
		}
	}
	j.fill(b, true)
	return nil
}
