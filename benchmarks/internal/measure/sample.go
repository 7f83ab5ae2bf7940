package measure

import (
	"runtime"
	"time"
)

// A Sample is what one operation cost, as the mean over many.
type Sample struct {
	Wall   float64 // ns
	CPU    float64 // ns of processor time of this process, with its garbage collector
	Bytes  float64 // allocated
	Allocs float64
}

// Measure runs do, which does n operations.
func Measure(n int, do func(n int) error) (Sample, error) {
	var before, after runtime.MemStats
	runtime.GC() // or the next one would pay for what the last one left behind
	runtime.ReadMemStats(&before)
	cpu, start := processorTime(), time.Now()
	err := do(n)
	wall := time.Since(start)
	cpu = processorTime() - cpu
	runtime.ReadMemStats(&after)
	per := float64(n)
	return Sample{
		Wall:   float64(wall) / per,
		CPU:    float64(cpu) / per,
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / per,
		Allocs: float64(after.Mallocs-before.Mallocs) / per,
	}, err
}

// LiveHeap returns the heap that is in use after a full collection.
func LiveHeap() uint64 { return Live().HeapAlloc }

// Live returns the statistics after a full collection.
func Live() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC() // the second empties the pools
	runtime.ReadMemStats(&m)
	return m
}
