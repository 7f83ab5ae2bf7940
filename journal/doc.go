// Package journal keeps Intents in the caller's own database, so that they
// survive the process and are shared by a fleet: SQLite in one file, PostgreSQL
// for many machines, over database/sql with any driver.
//
//	j, err := journal.New(db, journal.Config{})
//	…
//	err = j.Mint(ctx, tx, ref)          // in the transaction that writes the order
//	err = tx.Commit()                   // nothing can be sent before this
//	charge, err := j.Claim(ctx, ref)    // an Intent that records what it does
//	res, err := client.Call(ctx, charge, "POST", "/charges", order, &receipt)
//
// The table is the record of what was promised, not a queue: a row is never
// deleted, and one (scope, id) has one key for as long as anyone may ask again.
//
// # What a claimed Intent does
//
// It carries an [idem.Layer] that cannot be forgotten. Before the first byte
// leaves, it writes when the key was first sent, when its window ends, and what
// request it stands for. After the answer it writes the outcome, and from then
// on it answers from the row and sends nothing. If the row cannot be written,
// nothing is sent.
//
// A claim is a lease, held by the database's clock and extended while a call is
// under way. It saves traffic; it is the key that gives one effect. Each claim
// raises the row's token, and what is written must carry it: a worker that was
// paused past its lease and wakes up settles nothing.
//
// # What nobody waits for
//
// [Journal.Run] takes Intents that are due or abandoned and calls a [Handler]
// with them, or sends the stored bytes again ([Journal.Resend]). Nothing runs
// unless it is called. Nothing is sent after the key's window, less a margin; what
// is unknown then becomes expired and is told to a callback, and never gets a new
// key.
//
// # States
//
//	minted     promised; no send can have had an effect
//	unknown    sent, or perhaps sent; the outcome is not known
//	stuck      unknown, and sending again cannot tell more: ask another way
//	settled    answered; the row has the answer
//	expired    not settled when the window ended; a person decides
//	cancelled  withdrawn before anything was sent
//
// # Databases
//
// On SQLite open transactions with immediate locking, wait for locks and keep
// synchronous at FULL, for instance with modernc.org/sqlite:
//
//	file:shop.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//
// Never claim or send while a transaction of yours is open on SQLite: the claim
// waits for it. synchronous=NORMAL, or synchronous_commit=off on PostgreSQL, may
// lose a key after it was sent, and so may a replica that was behind when it took
// over; Config.Key gives keys that come out the same when they are minted again.
package journal
