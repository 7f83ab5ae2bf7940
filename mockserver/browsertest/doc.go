// Package browsertest holds the tests of the mock server's page in a real
// browser. It is a module of its own, so that what drives the browser is no
// dependency of idem.
//
//	go test ./mockserver/browsertest
//
// Without a Chromium in the PATH the tests are skipped. With -update they write
// the picture in the README anew.
package browsertest
