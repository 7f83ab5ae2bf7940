// Stagedoor is a ticket shop in the middle of a bad night: buyers click twice,
// requests and answers are lost, a process dies with the money half way, and every
// seat is sold once, charged once and told of once.
//
//	go run ./examples/stagedoor                                          # on SQLite
//	go run ./examples/stagedoor -db postgres://root@127.0.0.1:5432/test  # on PostgreSQL
//	go run ./examples/stagedoor -serve                                   # to be tried with curl
//
// The tables are made in a place of their own and removed afterwards. It exits with
// 1 unless every number of the last table is what it must be.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	db := flag.String("db", "", "postgres:// URL of a database; empty: SQLite in a temporary file")
	server := flag.Bool("serve", false, "leave the shop running, to be tried with curl")
	addr := flag.String("addr", "127.0.0.1:8080", "with -serve: the address to listen on")
	locks := flag.String("lock", "", `"redis" or a redis:// URL: a short lock in front of the table; empty: none`)
	flag.Parse()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	lock, err := newLock(*locks)
	if err == nil {
		err = onStore(ctx, *db, func(store *Store) error {
			if *server {
				return serve(ctx, os.Stdout, store, lock, *addr)
			}
			return play(ctx, os.Stdout, store, lock)
		})
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
