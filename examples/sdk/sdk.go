// Package sdk is a pattern for a client of your own API on idem.Client: typed
// calls, pages, and errors to match, as a generator would write them.
//
// Every write takes the Intent as a parameter, so that it cannot be forgotten,
// and no read does. There is no retry, no timeout and no key here: that is the
// business of idem.Transport and of the caller's context.
package sdk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/idem-go/idem"
)

// Client calls the API of orders. It is safe for concurrent use.
type Client struct{ api *idem.Client }

// Config is what a Client is made of.
type Config struct {
	// BaseURL is where the API lives; empty: the production address.
	BaseURL string
	// Token is the API token. Required.
	Token string
	// Transport sends; nil: &idem.Transport{}.
	Transport *idem.Transport
}

// New returns a Client, or everything that is wrong with cfg.
func New(cfg Config) (*Client, error) {
	if cfg.Token == "" {
		return nil, errors.New("sdk: Config.Token is empty")
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "https://api.orders.example/v1"
	}
	api, err := idem.NewClient(idem.Config{
		BaseURL:   cfg.BaseURL,
		Header:    http.Header{"Authorization": {"Bearer " + cfg.Token}, "Api-Version": {"2026-11-01"}},
		Transport: cfg.Transport,
	})
	if err != nil {
		return nil, err
	}
	return &Client{api: api}, nil
}

// NewOrder is what is ordered.
type NewOrder struct {
	Item   string `json:"item"`
	Amount int64  `json:"amount"`
}

// Order is an order as the API knows it.
type Order struct {
	ID      string    `json:"id"`
	Item    string    `json:"item"`
	Amount  int64     `json:"amount"`
	Status  string    `json:"status"`
	Created time.Time `json:"created"`
}

// Errors of the API, to match with errors.Is. The *idem.Error is in the chain as
// well, with the status, the whole problem document and the outcome.
var (
	ErrNotFound = errors.New("sdk: there is no such order")
	ErrShipped  = errors.New("sdk: the order is on its way already")
	ErrDeclined = errors.New("sdk: the payment was declined")
)

// CreateOrder orders once, however often it is called with one Intent:
//
//	create := idem.Open() // at the click
//	order, err := orders.CreateOrder(ctx, create, sdk.NewOrder{Item: "tea", Amount: 450})
//
// If err is not nil, create.Outcome() says what is known of the order.
func (c *Client) CreateOrder(ctx context.Context, in *idem.Intent, order NewOrder) (Order, error) {
	return call[Order](ctx, c, in, http.MethodPost, "/orders", order)
}

// GetOrder returns an order.
func (c *Client) GetOrder(ctx context.Context, id string) (Order, error) {
	if id == "" {
		return Order{}, errNoID
	}
	return call[Order](ctx, c, nil, http.MethodGet, "/orders/"+url.PathEscape(id), nil)
}

// CancelOrder cancels an order. It is another deed than the order itself: it
// needs an Intent of its own.
func (c *Client) CancelOrder(ctx context.Context, in *idem.Intent, id, reason string) (Order, error) {
	if id == "" {
		return Order{}, errNoID
	}
	body := map[string]string{"reason": reason}
	return call[Order](ctx, c, in, http.MethodPost, "/orders/"+url.PathEscape(id)+"/cancel", body)
}

// ListOrders returns all orders with a status, oldest first, in pages of size as
// they are needed; an empty status means every one, a size of 0 the API's own.
// It ends after the first error.
func (c *Client) ListOrders(ctx context.Context, status string, size int) iter.Seq2[Order, error] {
	return func(yield func(Order, error) bool) {
		query := url.Values{}
		if status != "" {
			query.Set("status", status)
		}
		if size > 0 {
			query.Set("limit", strconv.Itoa(size))
		}
		for {
			page, err := call[page](ctx, c, nil, http.MethodGet, "/orders?"+query.Encode(), nil)
			if err != nil {
				yield(Order{}, err)
				return
			}
			for _, order := range page.Data {
				if !yield(order, nil) {
					return
				}
			}
			if page.Next == "" || page.Next == query.Get("after") {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

type page struct {
	Data []Order `json:"data"`
	Next string  `json:"next"` // empty: this is the last page
}

var errNoID = errors.New("sdk: the id is empty")

// call makes one call, and gives the API's own errors names.
func call[T any](ctx context.Context, c *Client, in *idem.Intent, method, path string, body any) (T, error) {
	var out T
	_, err := c.api.Call(ctx, in, method, path, body, &out)
	if e, ok := errors.AsType[*idem.Error](err); ok && e.Problem != nil {
		known := map[string]error{"not-found": ErrNotFound, "shipped": ErrShipped, "declined": ErrDeclined}
		if named := known[e.Problem.Type]; named != nil {
			err = fmt.Errorf("%w: %w", named, e)
		}
	}
	return out, err
}
