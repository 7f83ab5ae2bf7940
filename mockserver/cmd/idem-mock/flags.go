package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

const usage = `usage: idem-mock [flags]

An API of orders (POST and GET /orders, or any other name) that keeps an
idempotency contract and breaks the network as it is told.

  idem-mock
      keeps the default contract and breaks nothing; the page is at
      http://127.0.0.1:8081/
  idem-mock -on "POST /charges" -then reset@stored,503@received
      the first attempt of each key loses its answer, the second meets a 503
  idem-mock -on "POST /charges" -sometimes 0.1 -seed 7
      one attempt in ten meets a fault, the same ones in each run
  idem-mock -contract stripe -addr 127.0.0.1:0 -control ""
      another contract, any free port, no control API
  curl -H 'Mock-Fault: reset@stored' -H 'Idempotency-Key: k' -d '{}' http://127.0.0.1:8080/orders
      one request brings its own fault

A fault is action@point options, such as reset@stored or
"503@received retry-after=30"; go doc github.com/idem-go/idem/mockserver lists
them. Faults are separated by commas; a value with a comma is quoted.

At an interrupt it verifies what the clients did. The exit status is 1 if there
was a breach, 2 if it could not run.

`

// options are what the command line says.
type options struct {
	config  mockserver.Config
	control string
	scripts []*script
	quiet   bool
}

// script is one -on with what follows it.
type script struct {
	on        string
	then      []mockserver.Fault
	always    mockserver.Fault
	odds      float64
	sometimes []mockserver.Fault
	seed      uint64
}

// add adds the script, which has been checked, to a server.
func (s *script) add(srv *mockserver.Server) {
	sc := srv.On(s.on).Then(s.then...)
	if s.always != "" {
		sc.Always(s.always)
	}
	if s.odds > 0 {
		sc.Sometimes(s.odds, s.seed, s.sometimes...)
	}
}

// parse reads the command line.
func parse(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("idem-mock", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error is told once, by the caller
	name := "default"
	f.StringVar(&o.config.Addr, "addr", "127.0.0.1:8080", "`address` of the mocked API")
	f.StringVar(&o.control, "control", "127.0.0.1:8081", "`address` of the page and the control API, on this machine; empty: none")
	f.StringVar(&name, "contract", name, "`name` of the contract that is kept: "+strings.Join(contracts(), ", "))
	f.BoolVar(&o.config.TLS, "tls", false, "https, with a certificate that nobody trusts")
	f.BoolVar(&o.config.HTTP2, "http2", false, "HTTP/2 as well, without TLS by prior knowledge")
	f.BoolVar(&o.quiet, "quiet", false, "no line for each request")
	f.IntVar(&o.config.MaxAttempts, "max-attempts", 0, "how many attempts of a key are no storm; 0 is 10")
	scripts(f, &o)
	switch err = f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		printf(errs, "%s", usage)
		f.SetOutput(errs)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; -help lists the flags", err)
	case f.NArg() > 0:
		return o, fmt.Errorf("there is no argument %q; -help lists the flags", f.Arg(0))
	}
	if o.config.Contract, err = contract.ByName(name); err != nil {
		return o, fmt.Errorf("-contract %s: there are %s", name, strings.Join(contracts(), ", "))
	}
	return o, o.check()
}

// scripts defines the flags of scripts: each -on begins one.
func scripts(f *flag.FlagSet, o *options) {
	last := func() *script {
		if len(o.scripts) == 0 {
			o.scripts = append(o.scripts, newScript("/"))
		}
		return o.scripts[len(o.scripts)-1]
	}
	f.Func("on", "`pattern` of the requests that the flags after it are about, such as \"POST /charges\"; it may come several times", func(v string) error {
		o.scripts = append(o.scripts, newScript(v))
		return nil
	})
	f.Func("then", "`faults` that the attempts of each key meet, in this order", func(v string) (err error) {
		last().then, err = faults(v)
		return err
	})
	f.Func("always", "`fault` that every attempt meets after those of -then", func(v string) error {
		last().always = mockserver.Fault(v)
		return last().always.Validate()
	})
	f.Func("sometimes", "`probability` from 0 to 1 with which an attempt after those of -then meets one of -faults", func(v string) (err error) {
		if last().odds, err = strconv.ParseFloat(v, 64); err != nil || !(last().odds >= 0 && last().odds <= 1) {
			return errors.New("a number from 0 to 1 is wanted")
		}
		return nil
	})
	f.Func("faults", "`faults` that -sometimes draws from (default reset@stored,drop@received,503@received retry-after=1)", func(v string) (err error) {
		last().sometimes, err = faults(v)
		return err
	})
	f.Func("seed", "`number` that -sometimes draws by", func(v string) (err error) {
		if last().seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			return errors.New("a number from 0 on is wanted")
		}
		return nil
	})
}

func newScript(on string) *script {
	return &script{on: on, sometimes: []mockserver.Fault{"reset@stored", "drop@received", "503@received retry-after=1"}}
}

// faults reads a list of faults, separated by commas outside of quotes.
func faults(list string) (faults []mockserver.Fault, err error) {
	for list != "" {
		end := 0
		for end < len(list) && list[end] != ',' {
			quoted, err := strconv.QuotedPrefix(list[end:])
			if err != nil || list[end] == '\'' { // no quote, or one that is not closed: Validate says so
				quoted = list[end : end+1]
			}
			end += len(quoted)
		}
		f := mockserver.Fault(strings.TrimSpace(list[:end]))
		if err := f.Validate(); err != nil {
			return nil, err
		}
		faults = append(faults, f)
		list = strings.TrimPrefix(list[end:], ",")
	}
	return faults, nil
}

// check finds what a server would panic at, and what is not safe.
func (o *options) check() error {
	for _, s := range o.scripts {
		if err := pattern(s.on); err != nil {
			return fmt.Errorf("-on %q: %w", s.on, err)
		}
		if s.odds > 0 && len(s.sometimes) == 0 {
			return errors.New("-sometimes wants -faults to draw from")
		}
		for _, f := range append(append([]mockserver.Fault{s.always}, s.then...), s.sometimes...) {
			if strings.Contains(string(f), "@handshake") && !o.config.TLS {
				return fmt.Errorf("the fault %q wants -tls", f)
			}
		}
	}
	if o.control == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.control)
	if err != nil {
		return fmt.Errorf("-control %s: %w", o.control, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("-control %s: the control API is for this machine alone; right is 127.0.0.1:8081", o.control)
	}
	return nil
}

// pattern reports what http.ServeMux says against a pattern.
func pattern(p string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	http.NewServeMux().Handle(p, http.NotFoundHandler())
	return nil
}

func contracts() (names []string) {
	for _, c := range contract.All() {
		names = append(names, c.Name)
	}
	return names
}
