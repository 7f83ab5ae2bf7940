package journal

import (
	"context"

	"github.com/idem-go/idem"
)

type claimKey struct{}

// Resend returns a Handler that sends the stored bytes again, with the Intent's
// key, through client. Credentials are not among them: a transport below the
// client's Transport has to sign, and Config.Headers of the client are not added.
// What the caller's own tables are to learn they learn from Find, or from Claim
// and a call, which answers from the row.
//
// An Intent without a stored request, one that was minted by Mint and never sent,
// or whose body was too long, is an error that matches ErrNoRequest.
func (j *Journal) Resend(client *idem.Client) Handler {
	return func(ctx context.Context, ref Ref, in *idem.Intent) error {
		data, err := j.requestOf(ctx, ref)
		if err != nil {
			return err
		}
		r, err := j.set.keep.stored(ctx, ref, data)
		if err != nil {
			return explain("resend", ref, err)
		}
		resp, err := client.Do(in, r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}

// requestOf returns the stored request: that of the claim that Run hands down, or
// the row's.
func (j *Journal) requestOf(ctx context.Context, ref Ref) ([]byte, error) {
	var r *row
	if c, ok := ctx.Value(claimKey{}).(*claim); ok && c.j == j && c.ref == ref {
		r = c.row
	} else {
		own, cancel := j.own(ctx, false)
		defer cancel()
		var err error
		if r, err = j.read(own, j.run, ref); err != nil {
			return nil, failed(own, "resend", ref, err)
		}
	}
	if r == nil || len(r.request) == 0 {
		return nil, because(ErrNoRequest, "%v", ref)
	}
	return r.request, nil
}
