package chaos

import "hash/fnv"

// A Fault is what an attempt meets.
type Fault uint8

// The faults. The zero Fault is none.
const (
	None        Fault = iota
	DropBefore        // the connection drops, nothing was done
	DropAfter         // the work is done, then the connection drops
	DropDuring        // the connection drops, the work goes on behind it
	Unavailable       // 503 from in front of the service, nothing was done
	CutBody           // the work is done, the answer ends half way
)

// Shares are the shares of attempts, from 0 to 1, that meet each fault.
type Shares [CutBody + 1]float64

// Plan returns a fault for each attempt that depends on nothing but the seed, the
// order and the attempt's number, so that each client meets the same ones.
func (s Shares) Plan(seed uint64) func(order string, attempt int) Fault {
	return func(order string, attempt int) Fault {
		p := draw(seed, order, attempt)
		for f := DropBefore; f <= CutBody; f++ {
			if p < s[f] {
				return f
			}
			p -= s[f]
		}
		return None
	}
}

// draw returns a number in [0, 1): a hash of what it is given, mixed by the
// finalizer of splitmix64.
func draw(seed uint64, order string, attempt int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(order))
	x := h.Sum64() ^ seed + uint64(attempt)*0x9e3779b97f4a7c15 //nolint:gosec // attempts are positive
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
