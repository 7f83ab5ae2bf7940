package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// serve answers orders on a free port of the loopback interface, writes its URL
// to out, and ends when in does. It runs in a process of its own, so that what it
// costs is not counted as the clients'.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(takeOrder)} //nolint:gosec // its one client is known
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	_, _ = io.Copy(io.Discard, in)
	_ = server.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func takeOrder(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, peers.Created)
}

// startServer starts this program again as the server, and warms it up. stop ends
// it.
func startServer(ctx context.Context) (base string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve") //nolint:gosec // it is this program
	cmd.Stderr = log.Writer()
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	base, err = bufio.NewReader(out).ReadString('\n')
	base = strings.TrimSpace(base)
	if err == nil {
		warm := peers.Named(peers.Bare).New(peers.Config{Transport: newTransport()})
		err = serial(warm, base, "")(2000)
	}
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the server does not start: %w", err)
	}
	return base, stop, nil
}
