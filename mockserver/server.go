package mockserver

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/idem-go/idem/contract"
)

// Config says what a server is. The zero Config is a server of orders that keeps
// [contract.Default]. It is read by New and Start and may be used again.
type Config struct {
	// Handler does the work behind the contract; nil: the orders of [Orders].
	Handler http.Handler
	// Contract is what the server keeps; zero: contract.Default().
	Contract contract.Contract
	// Kind says in what the server departs from it; zero: in nothing.
	Kind Kind
	// Addr is where the server listens on TCP: "127.0.0.1:0" is a free port,
	// "memory" a network inside the process. Empty: memory for New, a free port
	// of the loopback interface for Start.
	Addr string
	// TLS makes it an https server, with certificates made when it starts.
	TLS bool
	// HTTP2 lets it speak HTTP/2 as well: over TLS, or with prior knowledge. Its
	// own clients prefer it then.
	HTTP2 bool
	// Idle is how long a connection is kept without a request; zero: for ever.
	Idle time.Duration
	// MaxAttempts is how many attempts of one key Verify takes for sane; zero: 10.
	MaxAttempts int
}

// TB is what New needs of a [testing.TB].
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A Server keeps a contract, breaks the network as it is told, and knows what
// really happened. Get one from [New] or [Start]. All methods may be called at
// any time and by several goroutines.
type Server struct {
	// URL is the base URL, without a slash at the end.
	URL string

	t           TB      // nil after Start
	parent      *Server // of a scope; nil otherwise
	scope       string  // the name of a scope
	hub         *hub
	contract    contract.Contract
	kind        Kind
	spoken      spoken
	given       http.Handler // Config.Handler; nil: orders
	addr        string
	http2       bool
	maxAttempts int
	authority   *authority // nil without TLS
	hs          *http.Server
	ready       *readyListener
	closed      context.Context // ends with Close
	close       context.CancelFunc
	under       sync.WaitGroup // every goroutine and request of the server

	mu         sync.Mutex
	scopes     map[string]*Server // by the name that Mock-Scope gives
	memory     *memory            // nil on TCP
	listener   net.Listener
	process    context.Context // ends with Close and Restart
	kill       context.CancelFunc
	conns      map[*conn]bool
	nconns     int
	transports []*transport
	dialling   int                  // dials of own clients under way
	dialled    map[string]*dialPlan // their connections, by the client's address, until accepted
	dialDone   *sync.Cond
	connected  map[attemptPoint]bool // points of connections that were reached

	handler  http.Handler
	ahead    time.Duration // of the server's clock
	starts   int           // how often it was made clean
	shifts   int           // how often all claims may have changed at once
	nscripts int           // scripts made so far
	waiters  int
	changed  chan struct{} // closed when something that is waited for may be true
	holds    []*hold
	scripts  []*Script
	attempts map[scope]int
	tallies  map[scope]tally
	stamps   map[string]int // stamp: the number of its attempt
	sends    map[string]int // stamp: how often it came
	log      []*Request
	heads    map[headID]head // of requests that have begun and are not in the log yet
	active   int             // requests whose life has not ended
	claims   map[claimID]*claim
	answers  int // given by the key layer
	effects  []Effect
	beliefs  map[string]Belief
}

// New starts a server for a test, in memory unless c says otherwise, and closes
// it when the test ends. The test fails if a scripted fault was not met, or if
// the handler panics. In a testing/synctest bubble call it inside.
func New(t TB, c Config) *Server {
	t.Helper()
	if c.Addr == "" {
		c.Addr = "memory"
	}
	s, err := start(t, c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		unused := s.unused()
		s.mu.Unlock()
		for _, err := range unused {
			t.Errorf("mockserver: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// Start starts a server without a test, on a free port of the loopback interface
// unless c says otherwise. The caller closes it.
func Start(c Config) (*Server, error) {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	return start(nil, c)
}

func start(t TB, c Config) (*Server, error) {
	if err := c.Contract.Validate(); err != nil {
		return nil, err
	}
	spoken, err := c.Kind.speak()
	if err != nil {
		return nil, err
	}
	s := &Server{
		t: t, hub: newHub(), contract: c.Contract.WithDefaults(), kind: c.Kind, spoken: spoken, given: c.Handler,
		addr: c.Addr, http2: c.HTTP2, maxAttempts: c.MaxAttempts,
		conns: map[*conn]bool{}, dialled: map[string]*dialPlan{}, scopes: map[string]*Server{}, changed: make(chan struct{}),
	}
	s.dialDone = sync.NewCond(&s.mu)
	s.closed, s.close = context.WithCancel(context.Background())
	s.process, s.kill = context.WithCancel(s.closed)
	s.empty()
	if s.maxAttempts == 0 {
		s.maxAttempts = 10
	}
	scheme := "http://"
	if c.TLS {
		if s.authority, err = newAuthority(); err != nil {
			return nil, err
		}
		scheme = "https://"
	}
	host := "mock.test"
	if c.Addr == "memory" {
		s.memory = newMemory()
	}
	l, err := s.listen(c.Addr)
	if err != nil {
		return nil, err
	}
	if s.listener = l; s.memory == nil {
		s.addr = l.Addr().String()
		host = s.addr
	}
	s.URL = scheme + host
	s.serve(c.Idle)
	return s, nil
}

// serve starts the goroutines.
func (s *Server) serve(idle time.Duration) {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(s.http2) // TLS is undone before
	//nolint:gosec // no timeout: a stalled client may be what a test is about, and Close ends it
	s.hs = &http.Server{
		Handler:     s,
		Protocols:   p,
		IdleTimeout: idle,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	if s.t != nil {
		s.hs.ErrorLog = log.New(io.Discard, "", 0) // a panic fails the test
	}
	s.ready = &readyListener{conns: make(chan net.Conn), closed: make(chan struct{}), addr: s.listener.Addr()}
	l := s.listener
	s.under.Go(func() { s.accept(l) })
	s.under.Go(func() { _ = s.hs.Serve(s.ready) })
}

// now is the server's clock. s.mu is held.
func (s *Server) now() time.Time { return time.Now().Add(s.ahead) }

func (s *Server) tls() bool { return s.authority != nil }

func (s *Server) inBody() bool { return s.contract.Place == contract.InBody }

func (s *Server) listenAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener.Addr()
}

// complainf fails the test; without one it goes to the log, where http.Server
// reports the panics of handlers too.
func (s *Server) complainf(format string, args ...any) {
	if s.t == nil {
		log.Printf(format, args...)
		return
	}
	s.t.Errorf(format, args...)
}
