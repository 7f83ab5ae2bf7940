// Package conformance holds tests only. They run every contract of the catalogue
// through the situations that keys are for, with the client and the mock server
// reading the same value, and compare the bytes on the wire with literals that
// were written from the pages of each API.
package conformance
