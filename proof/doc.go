// Package proof holds no code but tests. They hold the promises of idem, which
// docs/guarantees.md lists, against the mock server's ledger of effects:
//
//   - every sequence of ends of attempts, against every kind of server, in
//     virtual time (Exhaustive);
//   - restarts, company, clocks, redirects and gateways;
//   - one test for each rule of the outcome that fails when the rule is undone.
//
// The ordinary run is a smaller sweep. The whole of it takes some minutes:
//
//	go test -run Exhaustive ./proof -full
package proof
