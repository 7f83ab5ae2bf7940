package journal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Why an Intent is not to be had. Where an Intent is past its window the error
// matches idem.ErrExpired, and where the request is another one
// idem.ErrIntentReused.
var (
	// ErrNotMinted: there is no such row. It was never minted, or the transaction
	// that mints it has not committed.
	ErrNotMinted = errors.New("journal: not minted, or its transaction has not committed")
	// ErrLeased: another holds the Intent. Ask again later: it will be settled
	// then, or its lease over.
	ErrLeased = errors.New("journal: claimed by another")
	// ErrLeaseLost: this claim is over and another took the Intent. What was sent
	// keeps its key, so that nothing is done twice; claim again for the outcome.
	ErrLeaseLost = errors.New("journal: the lease is lost")
	// ErrCancelled: the Intent was withdrawn.
	ErrCancelled = errors.New("journal: cancelled")
	// ErrNotCancelled: the Intent was sent, so that it cannot be withdrawn.
	ErrNotCancelled = errors.New("journal: too late to cancel")
	// ErrNoAnswer: the Intent is settled, and its answer is not in the row: it was
	// too long, a stream, purged, or learnt by asking the server another way.
	ErrNoAnswer = errors.New("journal: settled, but the answer is not stored")
	// ErrNoRequest: Resend has nothing to send, as no request was stored.
	ErrNoRequest = errors.New("journal: no stored request: send it with a Handler, or mint with MintRequest")
	// ErrRetryTx: the database has undone the transaction to let another go on.
	// Run the whole transaction again, from its beginning.
	ErrRetryTx = errors.New("journal: run the whole transaction again")
)

var errTimeout = errors.New("journal: the database did not answer in time (Config.Timeout); " +
	"on SQLite, is a transaction still open? Commit before claiming and sending")

// textError is an error with a text of its own that matches others.
type textError struct {
	text string
	is   []error
}

func (e *textError) Error() string   { return e.text }
func (e *textError) Unwrap() []error { return e.is }

// because returns an error that matches err and says more.
func because(err error, format string, args ...any) error {
	return &textError{text: prefixed(err.Error()) + ": " + fmt.Sprintf(format, args...), is: []error{err}}
}

// prefixed gives a text our prefix in the place of another's.
func prefixed(text string) string {
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "idem: ")
	return "journal: " + strings.TrimPrefix(text, "journal: ")
}

// brief is the text of an error as a row keeps it: cut short, and without what
// PostgreSQL takes in no text. The texts of handlers may quote anything, and a row
// that cannot be written would be handled for ever.
func brief(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "?"), "\x00", "?")
	return fmt.Sprintf("%.200s", text)
}

// explain says what was being done, what the database met, and what to do about
// it. The driver's error stays matchable. It is nil for nil.
func explain(what string, ref Ref, err error) error {
	if err == nil {
		return nil
	}
	if ref != (Ref{}) {
		what += " " + ref.String()
	}
	advice, is := advise(err)
	e := &textError{text: "journal: " + what + ": " + strings.TrimPrefix(prefixed(err.Error()), "journal: "), is: []error{err}}
	if advice != "" {
		e.text += ": " + advice
	}
	if is != nil {
		e.is = append(e.is, is)
	}
	return e
}

// advise tells what to do about an error of the database, and what it matches.
func advise(err error) (advice string, is error) {
	switch sqlState(err) {
	case "25P02":
		return "an earlier statement has failed and the transaction is dead: roll back, and look at that statement's error", nil
	case "40001":
		return "another transaction was first: roll back and run the whole transaction again", ErrRetryTx
	case "40P01":
		return "deadlock: roll back and run the whole transaction again; mint several references in sorted order", ErrRetryTx
	case "55P03":
		return "another transaction holds the row: keep those that mint short", nil
	case "42P01":
		return "the table is not there: apply Schema or call Migrate", nil
	}
	switch code := sqliteCode(err); {
	case code == 517: // SQLITE_BUSY_SNAPSHOT: no busy timeout helps
		return "the transaction has read before it writes, and another wrote since: roll back and begin it with BEGIN IMMEDIATE (modernc: _txlock=immediate)", ErrRetryTx
	case code&0xff == 5, code&0xff == 6:
		return "another connection writes: set a busy timeout (modernc: _pragma=busy_timeout(5000)) and keep transactions short", nil
	case code == 1 && strings.Contains(err.Error(), "no such table"):
		return "the table is not there: apply Schema or call Migrate", nil
	}
	return "", nil
}

// failed explains an error of a statement that ran with a context of own.
func failed(ctx context.Context, what string, ref Ref, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		err = &textError{text: errTimeout.Error(), is: []error{errTimeout, err}}
	}
	return explain(what, ref, err)
}

// sqlState returns the SQLSTATE of a PostgreSQL error; pgx and lib/pq both give it.
func sqlState(err error) string {
	if s, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return s.SQLState()
	}
	return ""
}

// sqliteCode returns the extended result code of a SQLite error, or 0: modernc
// has a method Code, ncruces a method ExtendedCode, mattn a field of that name.
func sqliteCode(err error) int {
	if c, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return c.Code()
	}
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if !strings.Contains(strings.ToLower(v.Type().PkgPath()), "sqlite") {
			continue
		}
		if m := reflect.ValueOf(err).MethodByName("ExtendedCode"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
			v = m.Call(nil)[0]
		} else if v.Kind() == reflect.Struct {
			v = v.FieldByName("ExtendedCode")
		}
		if v.CanInt() {
			return int(v.Int())
		}
		if v.CanUint() {
			return int(v.Uint()) //nolint:gosec // a code of 16 bits
		}
	}
	return 0
}
