package mockserver

// A Fault says what happens to one attempt, as text: an action, the point of
// the request's life where it happens, and options.
//
//	pass                              nothing; lets one attempt through
//	reset@stored                      the answer is lost, the record is kept
//	503@received retry-after=30       answered in front of the server
//	reset@received send=1; 401@received send=2
//
// Several faults of one attempt are separated by semicolons. A value with
// spaces is quoted as in Go. The package documentation lists every action. The
// empty Fault is not valid; "pass" is the fault that does nothing. A [Script]
// checks a Fault when it takes it, not when an attempt meets it.
type Fault string

// Validate reports what is wrong with f and what would be right, or nil.
func (f Fault) Validate() error {
	_, err := f.parse()
	return err
}

// A Point is a moment in the life of a request. The constants are in their order.
type Point string

const (
	Dial      Point = "dial"      // a connection is asked for
	Handshake Point = "handshake" // the TLS handshake, after the client's first message
	Received  Point = "received"  // the request is read whole; nothing has been looked at
	Claimed   Point = "claimed"   // the key is claimed, the work not begun
	Worked    Point = "worked"    // the handler has returned, its answer is not kept yet
	Stored    Point = "stored"    // the answer is kept
	Head      Point = "head"      // before the first byte of an answer
	Body      Point = "body"      // within the body of an answer
)

// points returns every Point in order.
func points() []Point {
	return []Point{Dial, Handshake, Received, Claimed, Worked, Stored, Head, Body}
}
