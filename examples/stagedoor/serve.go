package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

//go:embed try.sh
var toTry string

// serve runs the shop, its provider and its jobs until ctx is done.
func serve(ctx context.Context, out io.Writer, store *Store, lock *Lock, addr string) error {
	provider, err := startProvider()
	if err != nil {
		return err
	}
	defer func() { _ = provider.Close() }()
	shop, err := openShop(ctx, store, Config{
		Provider: provider.URL, Base: provider.Transport(), Lock: lock, OnError: func(err error) { log.Print(err) },
	}, 20)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	server := &http.Server{Handler: shop.Handler(), ReadHeaderTimeout: 5 * time.Second}
	var all sync.WaitGroup
	all.Go(func() { log.Print(server.Serve(listener)) }) // until it is closed
	all.Go(func() { shop.jobs(ctx, provider, url) })
	_, _ = fmt.Fprintf(out, "The shop is open, with seats S01 to S20. To try:\n\nSHOP=%s\n%s", url, toTry)
	<-ctx.Done()
	err = server.Shutdown(context.WithoutCancel(ctx)) // orders under way are finished
	all.Wait()
	return err
}

// jobs is what runs beside the orders, until ctx is done.
func (s *Shop) jobs(ctx context.Context, provider *Provider, url string) {
	client := &http.Client{Timeout: 5 * time.Second}
	var all sync.WaitGroup
	every := func(d time.Duration, job func() error) {
		all.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for ctx.Err() == nil {
				if err := job(); err != nil && ctx.Err() == nil {
					s.OnError(err)
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	every(time.Second, func() error { _, err := s.finishOrders(ctx); return err })
	every(time.Second/5, func() error { _, err := s.relay(ctx, client, url+"/events"); return err })
	every(time.Second/5, func() error { _, err := provider.notify(ctx, client, url+"/webhooks"); return err })
	every(time.Hour, func() error { _, err := s.cleanUp(ctx); return err })
	s.reconcile(ctx, time.Second)
	all.Wait()
}
