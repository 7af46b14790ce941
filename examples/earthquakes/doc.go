// Package earthquakes is the data set of the examples and of "streamsql demo": a week of seismic events (SOURCE.md says
// where they come from). It imports nothing of the module; the events are in order of time.
package earthquakes

import _ "embed"

// JSONL are the events, one JSON object per line, oldest first.
//
//go:embed earthquakes.jsonl
var JSONL []byte
