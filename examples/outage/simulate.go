package main

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem"
)

// A fleet is some clients and the one service that all of them call. The service
// works on requests in the order in which they came, also on those whose client
// has stopped waiting, as most do; what does not fit into its queue is answered
// with 503 at once. During the outage it takes requests and works on none.
type fleet struct {
	clients  int
	calls    float64 // a second, of each client
	attempts int
	timeout  time.Duration // of an attempt
	capacity int           // requests a second
	queue    int
	outage   [2]time.Duration
	length   time.Duration
	ratio    float64 // of each client's Budget; zero: none
	floor    int
}

// A result is what the clients saw, second by second.
type result struct {
	outage [2]time.Duration
	good   []int // calls that succeeded
	sent   []int // requests that arrived
}

// rate is the mean of good calls a second.
func (r *result) rate(from, to int) float64 {
	sum := 0
	for _, n := range r.good[from:to] {
		sum += n
	}
	return float64(sum) / float64(to-from)
}

// A simulation is one run.
type simulation struct {
	fleet
	random  *rand.Rand
	backoff idem.Backoff
	budgets []*budget
	now     time.Duration
	events  events
	order   int
	waiting int           // requests in the queue
	free    time.Duration // when the service will have worked on all of them
	result  *result
}

func (f fleet) simulate(seed uint64) *result {
	seconds := int(f.length / time.Second)
	s := &simulation{
		fleet: f, random: rand.New(rand.NewPCG(seed, 0)), backoff: idem.Exponential(200*time.Millisecond, 10*time.Second),
		result: &result{outage: f.outage, good: make([]int, seconds), sent: make([]int, seconds)},
	}
	for client := range f.clients {
		var b *budget // nil: none
		if f.ratio > 0 {
			b = newBudget(f.ratio, f.floor)
		}
		s.budgets = append(s.budgets, b)
		s.nextCall(client)
	}
	for s.events.Len() > 0 {
		e := heap.Pop(&s.events).(event)
		if e.at >= f.length {
			break
		}
		s.now = e.at
		e.do()
	}
	return s.result
}

// nextCall lets a client call after a while: the calls are a Poisson process.
func (s *simulation) nextCall(client int) {
	s.after(time.Duration(s.random.ExpFloat64()/s.calls*float64(time.Second)), func() {
		s.budgets[client].earn()
		s.attempt(client, 1)
		s.nextCall(client)
	})
}

// attempt is one request, from its departure to its end.
func (s *simulation) attempt(client, number int) {
	s.result.sent[s.now/time.Second]++
	if s.waiting >= s.queue {
		s.failed(client, number) // 503
		return
	}
	s.waiting++
	start := max(s.now, s.free)
	if start >= s.outage[0] && start < s.outage[1] {
		start = s.outage[1]
	}
	s.free = start + time.Second/time.Duration(s.capacity)
	late := s.free-s.now > s.timeout
	s.after(s.free-s.now, func() {
		s.waiting--
		if !late {
			s.result.good[s.now/time.Second]++
		}
	})
	if late {
		s.after(s.timeout, func() { s.failed(client, number) })
	}
}

// failed is what a Transport does then.
func (s *simulation) failed(client, number int) {
	if number == s.attempts || !s.budgets[client].spend() {
		return
	}
	most := s.backoff(number)
	s.after(most-time.Duration(s.random.Float64()*float64(most/2)), func() { s.attempt(client, number+1) })
}

func (s *simulation) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{at: s.now + d, order: s.order, do: do})
}

// An event is something that happens at a time; of two at the same time the one
// that was planned first comes first.
type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// A budget counts as idem.Budget does, which shows nothing of its counting. A nil
// budget allows everything.
type budget struct{ ratio, left, most float64 }

func newBudget(ratio float64, floor int) *budget {
	return &budget{ratio: ratio, left: float64(floor), most: float64(floor) + 1000*ratio}
}

func (b *budget) earn() {
	if b != nil {
		b.left = min(b.left+b.ratio, b.most)
	}
}

func (b *budget) spend() bool {
	if b == nil {
		return true
	}
	if b.left < 1-1e-9 {
		return false
	}
	b.left--
	return true
}
