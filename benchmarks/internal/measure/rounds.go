package measure

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Case is one of those that are compared. Run does n operations.
type Case struct {
	Name string
	Size int // operations of a round; zero: as many as fit
	Run  func(n int) error
}

// Rounds measures each case once a round, for about the time each, in an order
// that is drawn anew. Before the first round each runs, to warm up and to see how
// many operations fit. step is called after each measurement.
func Rounds(cases []Case, rounds int, each time.Duration, step func()) (Costs, error) {
	costs := Costs{samples: map[string][]Sample{}}
	sizes := make([]int, len(cases))
	for i, c := range cases {
		n, err := size(c, each)
		if err != nil {
			return costs, fmt.Errorf("%s: %w", c.Name, err)
		}
		sizes[i] = n
		costs.Names = append(costs.Names, c.Name)
	}
	order := rand.New(rand.NewPCG(1, 0))
	for range rounds {
		for _, i := range order.Perm(len(cases)) {
			sample, err := Measure(sizes[i], cases[i].Run)
			if err != nil {
				return costs, fmt.Errorf("%s: %w", cases[i].Name, err)
			}
			costs.samples[cases[i].Name] = append(costs.samples[cases[i].Name], sample)
			step()
		}
	}
	return costs, nil
}

// size returns how many operations take about the time each, when all is warm.
func size(c Case, each time.Duration) (int, error) {
	if c.Size > 0 {
		return c.Size, c.Run(c.Size)
	}
	for n, warm := 1, false; ; {
		start := time.Now()
		if err := c.Run(n); err != nil {
			return 0, err
		}
		took := max(time.Since(start), 1)
		fit := max(1, int(float64(n)*float64(each)/float64(took)))
		switch {
		case warm:
			return fit, nil
		case took >= each/8:
			n, warm = fit, true
		default:
			n *= 4
		}
	}
}

// Costs are the samples of some cases, round by round.
type Costs struct {
	Names   []string // in the order of the report
	samples map[string][]Sample
}

// A Field is one number of a sample.
type Field func(Sample) float64

// Wall is the time that passed.
func Wall(s Sample) float64 { return s.Wall }

// CPU is the processor time.
func CPU(s Sample) float64 { return s.CPU }

// Bytes are those allocated.
func Bytes(s Sample) float64 { return s.Bytes }

// Allocs are the allocations.
func Allocs(s Sample) float64 { return s.Allocs }

// All returns a field of a case for each round.
func (c Costs) All(name string, f Field) []float64 {
	xs := make([]float64, len(c.samples[name]))
	for i, s := range c.samples[name] {
		xs[i] = f(s)
	}
	return xs
}

// Median returns the median of a field.
func (c Costs) Median(name string, f Field) float64 { return Median(c.All(name, f)) }

// Spread returns its spread.
func (c Costs) Spread(name string, f Field) float64 { return Spread(c.All(name, f)) }

// Ratio returns the median over the rounds of a field of one case to that of
// another in the same round, and its spread.
func (c Costs) Ratio(name, base string, f Field) (ratio, spread float64) {
	xs := Ratios(c.All(name, f), c.All(base, f))
	return Median(xs), Spread(xs)
}
