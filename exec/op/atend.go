package op

import "github.com/streamsql/streamsql/exec"

// atEnd is part of operators whose rows leave when the input has ended: until then event time stands still behind
// them, because every row they hold would be late there.
type atEnd struct{}

// OutputWatermark implements exec.WatermarkDelayer.
func (atEnd) OutputWatermark(w exec.Watermark) exec.Watermark {
	if w == exec.MaxWatermark {
		return w
	}
	return exec.NoWatermark
}
