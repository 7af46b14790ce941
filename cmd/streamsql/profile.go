package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profile starts the CPU profile that -cpuprofile asks for. The function returned ends it; a process that is killed
// leaves an empty file.
func (f *flags) profile() (end func(), err error) {
	if f.cpuProfile == "" {
		return func() {}, nil
	}
	w, err := os.Create(f.cpuProfile)
	if err != nil {
		return nil, fmt.Errorf("flag -cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		w.Close()
		return nil, fmt.Errorf("flag -cpuprofile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		w.Close()
	}, nil
}
