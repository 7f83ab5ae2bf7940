package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Lock spares the database the inserts of a crowd of duplicates: who does not get it
// only looks whether there is an answer. It stands in front of the table of claims
// and never in its place: it can be lost with its server, and it ends after its time
// whether or not the work has. That there is one order is the table's doing. So where
// Redis does not answer, everybody passes.
//
// A nil Lock lets everybody pass.
type Lock struct{ redis *redis.Client }

// newLock returns the Lock of that name: "redis" for the server of this machine, or
// a redis:// URL. The empty name is that of none.
func newLock(name string) (*Lock, error) {
	switch name {
	case "":
		return nil, nil
	case "redis":
		name = "redis://127.0.0.1:6379"
	}
	options, err := redis.ParseURL(name)
	if err != nil {
		return nil, fmt.Errorf("stagedoor: -lock: %w", err)
	}
	// It must not cost more than it saves; and a SET NX that is repeated by itself
	// meets its own lock.
	options.DialTimeout, options.ReadTimeout, options.MaxRetries = time.Second/5, time.Second/5, -1
	return &Lock{redis: redis.NewClient(options)}, nil
}

// release deletes the lock if it is still ours: when it has run out, another's.
const release = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

// try takes the lock of a claim and reports whether the caller may insert it.
// unlock gives it back.
func (l *Lock) try(ctx context.Context, c claim, onError func(error)) (unlock func(), ok bool) {
	if l == nil {
		return func() {}, true
	}
	name, mine := "stagedoor:"+printOf(c.buyer, c.key, nil), rand.Text()
	err := l.redis.SetArgs(ctx, name, mine, redis.SetArgs{Mode: "NX", TTL: 30 * time.Second}).Err()
	switch {
	case err == redis.Nil: //nolint:errorlint // the very value is the sign
		return nil, false
	case err != nil:
		onError(err)
		return func() {}, true
	}
	return func() {
		if err := l.redis.Eval(context.WithoutCancel(ctx), release, []string{name}, mine).Err(); err != nil {
			onError(err) // it ends by itself
		}
	}, true
}
