// Package mockserver is a server that keeps a key contract, breaks the network
// on demand, and knows what really happened.
package mockserver
