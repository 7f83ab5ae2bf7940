package mockserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Orders returns the handler of a server without Config.Handler: a small API of
// orders under any collection name, such as /orders or /charges.
//
//	POST /orders       a JSON object; answers 201 and the object with an id
//	                   (each 201 is an effect "order"), or 402 if its amount is
//	                   above 100000, or 400
//	GET  /orders       the caller's orders
//	GET  /orders/{id}  one of them, or 404
//
// A caller sees the orders of its own credential. Ids count from 1. It keeps no
// key by itself: that is the contract's work. The handler is new, with nothing in it.
func Orders() http.Handler {
	o := &orders{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{collection}", o.create)
	mux.HandleFunc("GET /{collection}", o.list)
	mux.HandleFunc("GET /{collection}/{id}", o.get)
	return mux
}

type orders struct {
	mu  sync.Mutex
	all []order
}

type order struct {
	caller, collection, id string
	body                   map[string]any
}

func (o *orders) create(w http.ResponseWriter, r *http.Request) {
	b, err := readAll(r)
	body := map[string]any{}
	if err == nil && len(b) > 0 {
		err = decode(b, &body)
	}
	if err != nil {
		problem(w, http.StatusBadRequest, "The body is not a JSON object")
		return
	}
	const limit = 100000
	if amount, ok := body["amount"].(json.Number); ok {
		if f, _ := amount.Float64(); f > limit { // what is out of range is infinite
			problem(w, http.StatusPaymentRequired, "The amount is above the limit")
			return
		}
	}
	if body == nil { // the JSON text null
		body = map[string]any{}
	}
	o.mu.Lock()
	id := fmt.Sprint(len(o.all) + 1)
	body["id"] = id
	if Did(r.Context(), "order", body) {
		o.all = append(o.all, order{credential(r.Header), r.PathValue("collection"), id, body})
	}
	o.mu.Unlock()
	w.Header().Set("Location", r.URL.EscapedPath()+"/"+id)
	reply(w, http.StatusCreated, body)
}

func (o *orders) list(w http.ResponseWriter, r *http.Request) {
	mine := o.of(r)
	list := make([]any, len(mine)) // not nil: no orders are [] and not null
	for i, e := range mine {
		list[i] = e.body
	}
	reply(w, http.StatusOK, map[string]any{"data": list})
}

func (o *orders) get(w http.ResponseWriter, r *http.Request) {
	for _, e := range o.of(r) {
		if e.id == r.PathValue("id") {
			reply(w, http.StatusOK, e.body)
			return
		}
	}
	problem(w, http.StatusNotFound, "There is no such order")
}

// of returns the caller's orders in the collection.
func (o *orders) of(r *http.Request) (list []order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.all {
		if e.caller == credential(r.Header) && e.collection == r.PathValue("collection") {
			list = append(list, e)
		}
	}
	return list
}

// decode reads one JSON text whole. Numbers stay as they are written, whatever
// their size.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("mockserver: there is more than one JSON text")
	}
	return nil
}

func problem(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "application/problem+json")
	write(w, status, map[string]any{"type": "about:blank", "title": title, "status": status})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	write(w, status, v)
}

func write(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // it came from JSON
}
