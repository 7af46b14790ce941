package datagen

import (
	"math"
	"strconv"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rng is splitmix64.
type rng uint64

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// below is a number in [0,n); n = 0 means 2^64.
func (r *rng) below(n uint64) uint64 {
	if n == 0 {
		return r.next()
	}
	return r.next() % n // the bias of ranges far below 2^64 does not matter for made-up data
}

// unit is a number in [0,1).
func (r *rng) unit() float64 { return float64(r.next()>>11) / (1 << 53) }

func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// rowSource is where a run of rows comes from: rows from..from+n of split of splits.
type rowSource struct {
	seed          uint64
	split, splits int64
	from          int64
	now           time.Time
	zone          *time.Location
}

// at is the random source of f for row k: independent of all other fields and rows.
func (s *rowSource) at(f *field, k int64) rng {
	return rng(mix(s.seed ^ mix(f.id^mix(uint64(s.split)<<48^uint64(k)))))
}

// fill appends n values of f to col.
func (s *rowSource) fill(f *field, col *batch.ColBuilder, n int) {
	if f.sequence {
		s.fillSequence(f, col, n)
		return
	}
	var buf []byte
	for k := s.from; k < s.from+int64(n); k++ {
		r := s.at(f, k)
		if f.nullRate > 0 && r.unit() < f.nullRate {
			col.AppendNull()
			continue
		}
		switch {
		case f.ty.IsInteger() || f.ty.IsInterval():
			col.AppendI64(f.lo + int64(r.below(uint64(f.hi)-uint64(f.lo)+1)))
		case f.ty.IsString() || f.ty.IsBytes():
			buf = f.text(buf[:0], &r)
			col.AppendStr(string(buf))
		default:
			col.AppendDatum(s.datum(f, &r))
		}
	}
}

func (s *rowSource) fillSequence(f *field, col *batch.ColBuilder, n int) {
	for k := s.from; k < s.from+int64(n); k++ {
		r := s.at(f, k)
		if f.nullRate > 0 && r.unit() < f.nullRate {
			col.AppendNull()
			continue
		}
		v := f.lo + s.split + k*s.splits
		switch {
		case f.ty.IsString():
			col.AppendStr(strconv.FormatInt(v, 10))
		case f.ty.Kind == types.Decimal:
			col.AppendDatum(decimalInt(v, f.ty))
		case f.ty.Kind == types.Float:
			col.AppendF64(float64(float32(v)))
		case f.ty.Kind == types.Double:
			col.AppendF64(float64(v))
		default:
			col.AppendI64(v)
		}
	}
}

// decimalInt is v in the DECIMAL type t, NULL when it does not fit.
func decimalInt(v int64, t types.Type) types.Datum {
	scaled := types.I128(v)
	for range t.Scale {
		scaled = mul10(scaled)
	}
	limit := types.I128(1)
	for range t.Precision {
		limit = mul10(limit)
	}
	if scaled.Cmp(limit) >= 0 || scaled.Cmp(limit.Neg()) <= 0 || (t.Precision-t.Scale < 19 && abs(v) >= uint64(math.Pow10(t.Precision-t.Scale))) {
		return types.NullDatum
	}
	if t.Phys() == types.PhysI128 {
		return types.I128Datum(scaled)
	}
	return types.IntDatum(scaled.Int64())
}

func abs(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

func mul10(v types.Int128) types.Int128 {
	v2 := v.Add(v)
	v8 := v2.Add(v2)
	v8 = v8.Add(v8)
	return v8.Add(v2)
}

const hexDigits = "0123456789abcdef"

// text appends random hexadecimal characters, or bytes for binary types.
func (f *field) text(dst []byte, r *rng) []byte {
	n := f.length
	if f.varLen {
		n = 1 + int(r.below(uint64(n)))
	}
	isText := f.ty.IsString()
	for n > 0 {
		v := r.next()
		for i := 0; i < 8 && n > 0; i, n = i+1, n-1 {
			if isText {
				dst = append(dst, hexDigits[v&15])
			} else {
				dst = append(dst, byte(v))
			}
			v >>= 8
		}
	}
	return dst
}

// datum is a random value of any type.
func (s *rowSource) datum(f *field, r *rng) types.Datum {
	if f.nullRate > 0 && len(f.parts) == 0 && r.unit() < f.nullRate {
		return types.NullDatum
	}
	switch f.ty.Kind {
	case types.Boolean:
		return types.BoolDatum(r.next()&1 == 1)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.IntervalYearMonth, types.IntervalDayTime:
		return types.IntDatum(f.lo + int64(r.below(uint64(f.hi)-uint64(f.lo)+1)))
	case types.Float:
		return types.FloatDatum(float64(float32(f.between(r))))
	case types.Double:
		return types.FloatDatum(f.between(r))
	case types.Decimal:
		return f.decimal(r)
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		return types.StrDatum(string(f.text(nil, r)))
	case types.Date, types.Time, types.Timestamp, types.TimestampLTZ:
		return s.temporal(f, r)
	}
	return s.nested(f, r)
}

func (s *rowSource) nested(f *field, r *rng) types.Datum {
	var list []types.Datum
	part := func(p *field) types.Datum {
		if p.nullRate > 0 && len(p.parts) > 0 && r.unit() < p.nullRate {
			return types.NullDatum
		}
		return s.datum(p, r)
	}
	if f.ty.Kind == types.Row {
		for _, p := range f.parts {
			list = append(list, part(p))
		}
		return types.Datum{List: list}
	}
	seen := map[string]bool{}
	for range f.length {
		key := part(f.parts[0])
		if f.ty.Kind == types.Array {
			list = append(list, key)
			continue
		}
		id := string(types.AppendValue(nil, key, f.parts[0].ty))
		if seen[id] {
			continue // keys of maps may collide: fewer entries
		}
		seen[id] = true
		value := types.IntDatum(1 + int64(r.below(10)))
		if f.ty.Kind == types.Map {
			value = part(f.parts[1])
		}
		list = append(list, key, value)
	}
	return types.Datum{List: list}
}

func (f *field) between(r *rng) float64 {
	u := r.unit()
	return f.flo*(1-u) + f.fhi*u // written so that the widest range does not overflow
}

func (f *field) decimal(r *rng) types.Datum {
	if f.ty.Precision > 15 {
		// A double has fewer digits than the type: the upper ones decide, the lower ones are zero.
		scaled := f.between(r) * math.Pow10(f.ty.Scale)
		neg := scaled < 0
		hi, lo := math.Abs(scaled)/0x1p64, math.Mod(math.Abs(scaled), 0x1p64)
		v := types.Int128{Hi: int64(hi), Lo: uint64(lo)}
		if neg {
			v = v.Neg()
		}
		if f.ty.Phys() == types.PhysI128 {
			return types.I128Datum(v)
		}
		return types.IntDatum(v.Int64())
	}
	return types.IntDatum(int64(math.Round(f.between(r) * math.Pow10(f.ty.Scale))))
}

// temporal is now, or up to max-past earlier.
func (s *rowSource) temporal(f *field, r *rng) types.Datum {
	now := s.now
	if f.maxPast > 0 {
		now = now.Add(-time.Duration(r.below(uint64(f.maxPast.Milliseconds())+1)) * time.Millisecond)
	}
	switch f.ty.Kind {
	case types.Date, types.Time:
		y, m, d := now.In(s.zone).Date()
		midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		if f.ty.Kind == types.Date {
			return types.IntDatum(midnight.Unix() / 86400)
		}
		local := now.In(s.zone)
		return types.IntDatum(int64(local.Hour()*3600+local.Minute()*60+local.Second())*1000 + int64(local.Nanosecond()/1e6))
	}
	ms := now.UnixMilli()
	if f.ty.Precision < 3 {
		ms -= ms % int64(math.Pow10(3-f.ty.Precision))
	}
	if f.ty.Phys() == types.PhysI128 {
		return types.I128Datum(types.Mul64(ms, 1e6))
	}
	return types.IntDatum(ms * 1e3)
}
