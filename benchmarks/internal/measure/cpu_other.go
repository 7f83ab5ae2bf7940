//go:build !unix

package measure

import (
	"runtime/metrics"
	"time"
)

// processorTime is what the runtime believes that this process has used so far.
func processorTime() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))
}
