package expr

import (
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// dateFormat is a DATE_FORMAT of a Program.
type dateFormat struct {
	cache patternCache
	at    func(row) (sec, nanos int64) // nil for a string
	micro bool                         // the time is a TIMESTAMP in microseconds
	zone  *time.Location
	last  formatted
	ar    arena
}

func dateFormatEval(b *site) func(Session) Eval {
	t := b.args[0].Type()
	return func(s Session) Eval {
		f := &dateFormat{cache: patternCache{simple: t.IsString()}, zone: s.zone(), micro: t.Kind == types.Timestamp && t.Precision <= 6}
		if !t.IsString() {
			f.at = localTime(t, s, 0)
		}
		return f.eval
	}
}

func (f *dateFormat) eval(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
	f.ar.reset()
	var p *timePattern
	var bad error
	constant := args[1].Const
	for i, r := range rows {
		x := row{args, int(r)}
		if i == 0 || !constant {
			if p, bad = f.cache.get(x.str(1)); bad != nil {
				p = nil
			}
		}
		if f.micro && p != nil && f.last.holdsMicros(p, x.i64(0)) {
			out.Str[r] = f.last.text
			continue
		}
		if bad != nil {
			fail(r, badPattern("DATE_FORMAT", x.str(1), bad))
			continue
		}
		text, err := f.text(p, x)
		switch err {
		case nil:
			out.Str[r] = text
		case isNull:
			out.SetNull(int(r), n)
		default:
			fail(r, err)
		}
	}
}

// text is the text of one row.
func (f *dateFormat) text(p *timePattern, x row) (string, *diag.Error) {
	var sec, nanos int64
	zone := f.zone
	if f.at == nil {
		ms, ok := isoSimple.parseLenient(x.str(0), time.UTC)
		if !ok {
			return "", isNull
		}
		sec, nanos, zone = types.FloorDiv(ms, 1000), types.FloorMod(ms, 1000)*1e6, time.UTC
	} else {
		sec, nanos = f.at(x)
	}
	if f.last.holds(p, sec) {
		return f.last.text, nil
	}
	buf, ok := p.format(f.ar.buf, sec, nanos, zone)
	if !ok {
		return "", badValue("DATE_FORMAT", "the pattern '%s' asks for a time zone, which a time stamp does not have", x.str(1)).
			WithHint("leave the letters X, x, z, Z, V and O out")
	}
	f.ar.buf = buf
	text := f.ar.take()
	f.last.keep(p, sec, text)
	return text, nil
}

// formatted is the text of the last time formatted: stamps of a stream follow each other, so the next one is often in the
// same minute or day.
type formatted struct {
	p        *timePattern
	from, to int64 // local seconds that the text is of, without to
	text     string
}

func (f *formatted) holds(p *timePattern, sec int64) bool {
	return f.p == p && f.from <= sec && sec < f.to
}

// holdsMicros is holds for a time in microseconds.
func (f *formatted) holdsMicros(p *timePattern, us int64) bool {
	return f.p == p && f.from*1e6 <= us && us < f.to*1e6
}

func (f *formatted) keep(p *timePattern, sec int64, text string) {
	unit := unitOf(p.items)
	if unit == 0 {
		f.p = nil
		return
	}
	f.p, f.from = p, sec-types.FloorMod(sec, unit)
	f.to, f.text = f.from+unit, text
}

// unitOf is for how many seconds, counted from midnight, the text of items is the same; 0 when its letters do not tell.
func unitOf(items []patItem) int64 {
	unit := int64(86400)
	for _, it := range items {
		switch {
		case it.opt != nil:
			unit = min(unit, unitOf(it.opt))
		case it.letter == 0 || strings.IndexByte("GuyYMLQqwWDdFE", it.letter) >= 0:
		case strings.IndexByte("aHhKkm", it.letter) >= 0:
			unit = min(unit, 60)
		default:
			return 0
		}
	}
	return unit
}
