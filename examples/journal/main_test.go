package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/idem-go/idem/examples/internal/page"
)

// The example starts itself again: so does its test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-role" {
		flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
		main()
		return
	}
	os.Exit(m.Run())
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	if err := show(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out.Bytes(), []byte("Charged: 1 time.")) {
		t.Error(out.String())
	}
	page.Shows(t, "journal", out.String())
}
