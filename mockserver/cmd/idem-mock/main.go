// Command idem-mock is the mock server by itself: an API of orders that keeps an
// idempotency contract, breaks the network as it is told, counts what was really
// done, and shows all of it on a live page.
//
//	go run github.com/idem-go/idem/mockserver/cmd/idem-mock -help
//
// It prints a line for each request, and stops at an interrupt. Then it verifies
// what the clients did: a breach is printed and makes the exit status 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/idem-go/idem/mockserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the command. It returns the exit status: 1 for breaches, 2 if it could
// not run.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		printf(errs, "idem-mock: %v\n", err)
		return 2
	}
	if err := serve(ctx, o, out); err != nil {
		if failed, ok := errors.AsType[*verdictError](err); ok {
			printf(errs, "%v\n", failed.error)
			return 1
		}
		printf(errs, "idem-mock: %v\n", err)
		return 2
	}
	return 0
}

// verdictError says that Verify has found breaches.
type verdictError struct{ error }

// serve runs the server until ctx ends.
func serve(ctx context.Context, o options, out io.Writer) error {
	srv, err := mockserver.Start(o.config)
	if err != nil {
		return inUse("-addr", o.config.Addr, err)
	}
	defer func() { _ = srv.Close() }()
	for _, s := range o.scripts {
		s.add(srv)
	}
	printf(out, "idem-mock: %s keeps the contract %s\n", srv.URL, o.config.Contract.Name)
	if o.control != "" {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.control)
		if err != nil {
			return inUse("-control", o.control, err)
		}
		control := &http.Server{Handler: srv.Control(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = control.Serve(l) }()
		defer func() { _ = control.Close() }()
		printf(out, "idem-mock: http://%s/ is the live page and the control API\n", l.Addr())
	}
	for r := range srv.Watch(ctx) {
		if !o.quiet {
			printf(out, "%s\n", line(r))
		}
	}
	if err := srv.Verify(); err != nil {
		return &verdictError{err}
	}
	printf(out, "idem-mock: no breach\n")
	return nil
}

// inUse says what to do where an address is taken.
func inUse(name, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s: the address is in use; port 0 takes a free one", name, addr)
	}
	return fmt.Errorf("%s %s: %w", name, addr, err)
}

// printf writes to a terminal; if that is gone there is nobody to tell.
func printf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
