package expr

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

const dayMillis = 86400000

// temporalKernel is DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ ± interval.
func temporalKernel(e *Binary) kernel {
	sign := int64(1)
	if e.Op == "-" {
		sign = -1
	}
	months := e.R.Type().Kind == types.IntervalYearMonth
	switch {
	case e.T.Kind == types.Time && months:
		return mapTemporal(func(x, _ int64) int64 { return x }) // as Flink
	case e.T.Phys() == types.PhysI128:
		return wideTemporal(sign, months)
	case e.T.Kind == types.Date && months:
		return mapTemporal(func(x, iv int64) int64 { return types.AddMonths(x, sign*iv) })
	case e.T.Kind == types.Date:
		return mapTemporal(func(x, iv int64) int64 { return x + sign*iv/dayMillis })
	case e.T.Kind == types.Time:
		return mapTemporal(func(x, iv int64) int64 { return types.FloorMod(x+sign*(iv%dayMillis), dayMillis) })
	case months:
		return mapTemporal(func(x, iv int64) int64 {
			day := types.FloorDiv(x, dayMillis*1000)
			return types.AddMonths(day, sign*iv)*dayMillis*1000 + x - day*dayMillis*1000
		})
	}
	return addMillis(sign * 1000)
}

// addMillis is a TIMESTAMP of microseconds plus unit times an interval of milliseconds.
func addMillis(unit int64) kernel {
	return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		if a[1].Const && !a[0].Const {
			addCK(out.I64, a[0].I64, a[1].I64[0]*unit, sel)
			return
		}
		for _, i := range rowsOf(c, sel, rows) {
			out.I64[i] = a[0].I64[a[0].Idx(int(i))] + a[1].I64[a[1].Idx(int(i))]*unit
		}
	}
}

func mapTemporal(f func(x, iv int64) int64) kernel {
	return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			out.I64[i] = f(a[0].I64[a[0].Idx(int(i))], a[1].I64[a[1].Idx(int(i))])
		}
	}
}

// wideTemporal is arithmetic on TIMESTAMPs of nanoseconds.
func wideTemporal(sign int64, months bool) kernel {
	return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			x, iv := a[0].I128[a[0].Idx(int(i))], sign*a[1].I64[a[1].Idx(int(i))]
			if !months {
				out.I128[i] = x.Add(types.Mul64(iv, 1e6))
				continue
			}
			sec, nanos := types.SplitNanos(x)
			day := types.FloorDiv(sec, 86400)
			out.I128[i] = types.JoinNanos(types.AddMonths(day, iv)*86400+sec-day*86400, nanos)
		}
	}
}
