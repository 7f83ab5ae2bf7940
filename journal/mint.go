package journal

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/idem-go/idem"
)

// Mint writes the promise of one Intent, in the caller's transaction if q is
// one. Called again with the same reference, by any process, it changes nothing:
// the row has its key for ever. It returns nothing that could send; Claim finds
// the row once the transaction has committed.
//
// A dispatcher leaves the Intent to the caller for one Lease, and takes it then
// if it was not claimed.
//
// On PostgreSQL a Mint waits for another transaction that has minted the same
// reference and not ended: keep such transactions short, and mint several
// references in sorted order. An error that matches ErrRetryTx means that the
// whole transaction must be run again by its owner.
func (j *Journal) Mint(ctx context.Context, q Querier, ref Ref) error {
	return j.mint(ctx, q, ref, "", nil, j.set.lease)
}

// MintRequest is Mint with the request that the Intent is to send: a dispatcher
// with Resend may send it as soon as the transaction has committed. r is not
// sent; its body is read and put back as by idem's Intent.Bind.
//
// If the reference was minted with another request, the error matches
// idem.ErrIntentReused. A body that is too long to be stored is an error that
// matches idem.ErrNotRepeatable.
func (j *Journal) MintRequest(ctx context.Context, q Querier, ref Ref, r *http.Request) error {
	in := idem.Open() // only to take the fingerprint, which has nothing of the key
	if err := in.Bind(r); err != nil {
		return err
	}
	mark := in.State().Fingerprint
	bytes, err := j.set.keep.request(ctx, ref, rereadable(r))
	if err == nil && bytes == nil {
		err = because(idem.ErrNotRepeatable, "the request is not stored (Config.MaxBody)")
	}
	if err != nil {
		return err
	}
	return j.mint(ctx, q, ref, mark, bytes, 0)
}

// rereadable is the request with a GetBody where its body is a file, which Bind
// leaves as it is.
func rereadable(r *http.Request) *http.Request {
	file, ok := r.Body.(interface {
		io.ReaderAt
		io.Seeker
	})
	if r.GetBody != nil || !ok {
		return r
	}
	c := *r
	c.GetBody = func() (io.ReadCloser, error) {
		from, err := file.Seek(0, io.SeekCurrent)
		length := math.MaxInt64 - from
		if r.ContentLength > 0 {
			length = r.ContentLength
		}
		return io.NopCloser(io.NewSectionReader(file, from, length)), err
	}
	return &c
}

// mint inserts first and reads on conflict, in two statements: an insert that
// returns the row it has met would write on every read, and a plain one would
// abort the caller's transaction on PostgreSQL.
func (j *Journal) mint(ctx context.Context, q Querier, ref Ref, mark string, request []byte, wait time.Duration) error {
	if err := ref.check(); err != nil {
		return err
	}
	key := j.set.key(ref)
	if _, err := idem.Adopt(key, time.Now()); err != nil {
		return err // Config.Key made it
	}
	if _, err := j.set.contract.Wire(key); err != nil {
		return because(idem.ErrInvalidKey, "mint %v: %v", ref, err) // what is promised must be possible to send
	}
	res, err := q.ExecContext(ctx, j.q.mint, ref.Scope, ref.ID, key, null(mark), null(request), wait.Milliseconds())
	if err != nil {
		return explain("mint", ref, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return explain("mint", ref, err)
	}
	r, err := j.read(ctx, q, ref)
	switch {
	case err != nil:
		return explain("mint", ref, err)
	case r == nil:
		return fmt.Errorf("journal: mint %v: the row is there but cannot be seen in this transaction: run it again: %w", ref, ErrRetryTx)
	case mark != "" && r.fingerprint != mark:
		return because(idem.ErrIntentReused, "mint %v", ref)
	}
	return nil
}

// Cancel withdraws an Intent of which nothing was sent, in the caller's
// transaction if q is one. Once cancelled it is never sent, and its reference is
// used up. One that was sent, or that is claimed and so may be sent at any moment,
// is left alone: the error matches ErrNotCancelled, or ErrLeased while the claim
// holds. Cancel again is no error.
func (j *Journal) Cancel(ctx context.Context, q Querier, ref Ref) error {
	res, err := q.ExecContext(ctx, j.q.cancel, ref.Scope, ref.ID)
	if err != nil {
		return explain("cancel", ref, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return explain("cancel", ref, err)
	}
	r, err := j.read(ctx, q, ref)
	switch {
	case err != nil:
		return explain("cancel", ref, err)
	case r == nil:
		return because(ErrNotMinted, "%v", ref)
	case r.state == Cancelled:
		return nil
	case r.state == Minted:
		return because(ErrLeased, "%v", ref)
	default:
		return because(ErrNotCancelled, "%v is %s", ref, r.state)
	}
}

// null makes what is empty NULL.
func null[T string | []byte](v T) any {
	if len(v) == 0 {
		return nil
	}
	return v
}
