package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
)

// What must be in the end: what each scene of the night adds, in their order.
// Of the requests those count that have left a phone, whether or not they arrived.
const (
	clicks   = 12 + 1 + 2 + 2 + 50 + 1 + 1
	requests = 20 + 200 + 2 + 3 + 50 + 3 + 1
	orders   = 12 + 1 + 1 + 2 + 1 + 1 + 1
	sold     = 12 + 1 + 1 + 1 + 1 + 1 + 1
)

// tally prints what there must be and what there is: the requests by the network's
// log, the charges by the provider's ledger, the rest by the tables.
func (n *night) tally(ctx context.Context) error {
	count := func(what string) (v int64) {
		if _, err := n.shop.store.find(ctx, []any{&v}, "SELECT "+what); err != nil {
			n.sayf("%s: %v", what, err)
			return -1
		}
		return v
	}
	seen := int64(0)
	for _, r := range n.front.Requests("") {
		if strings.HasSuffix(r.URL, "/orders") {
			seen++
		}
	}
	table := []struct {
		what     string
		must, is int64
	}{
		{"clicks of buyers", clicks, n.clicks.Load()},
		{"requests for orders", requests, seen},
		{"orders", orders, count("count(*) FROM orders")},
		{"orders not decided", 0, count("count(*) FROM orders WHERE state = 'pending'")},
		{"seats sold", sold, count("count(*) FROM holds")},
		{"charges at the provider", sold, int64(len(n.provider.Effects("")))},
		{"events delivered", 2 * orders, count("count(delivered_at) FROM outbox")},
		{"e-mails", sold, count("count(*) FROM mails")},
		{"credits to wallets", sold, count("coalesce(sum(credits), 0) FROM wallets")},
	}
	w := tabwriter.NewWriter(n.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "\tmust be\tis\t")
	var wrong error
	for _, row := range table {
		mark := ""
		if row.is != row.must {
			mark, wrong = "WRONG", errors.New("stagedoor: something happened twice, or not at all")
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t %s\n", row.what, row.must, row.is, mark)
	}
	return errors.Join(w.Flush(), wrong)
}
