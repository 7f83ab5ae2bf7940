package contract

// IETF is the letter of the draft "The Idempotency-Key HTTP Header Field": the
// key is a structured-field string, so it goes over the wire in quotes. The
// draft names no window, marker or retry hint; Default's are used.
func IETF() Contract {
	c := Default()
	c.Name = "ietf"
	c.Quoted = true
	return c
}
