package contract

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxDepth is how deep a body may nest on the way to a member. No API comes
// near it; a body that does is not worth the stack.
const maxDepth = 64

// scalars returns what stands at path in the JSON document that begins with
// prefix, in the order of the text, up to where the text ends or breaks:
// strings as they are, numbers as they are written, "true" and "false", and ""
// for an object. Arrays on the way are walked; null is as good as absent.
func scalars(prefix []byte, path string) []string {
	w := walker{dec: json.NewDecoder(bytes.NewReader(prefix)), size: int64(len(prefix))}
	w.dec.UseNumber()
	w.value(strings.Split(path, "."), maxDepth)
	return w.found
}

type walker struct {
	dec   *json.Decoder
	size  int64 // of the prefix
	found []string
}

// value reads one value, collects what is at path below it, and reports whether
// the text goes on.
func (w *walker) value(path []string, depth int) bool {
	token, err := w.dec.Token()
	if err != nil || depth == 0 {
		return false
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return w.object(path, depth)
		}
		for w.dec.More() {
			if !w.value(path, depth-1) {
				return false
			}
		}
		return w.close()
	case string:
		w.collect(path, token)
	case bool:
		if token {
			w.collect(path, "true")
		} else {
			w.collect(path, "false")
		}
	case json.Number:
		if w.dec.InputOffset() == w.size {
			return false // a number at the end of the prefix may be a part of a longer one
		}
		w.collect(path, token.String())
	}
	return true
}

// object reads the rest of an object whose opening brace was read.
func (w *walker) object(path []string, depth int) bool {
	w.collect(path, "")
	for w.dec.More() {
		name, err := w.dec.Token()
		if err != nil {
			return false
		}
		if len(path) > 0 && name == path[0] {
			if !w.value(path[1:], depth-1) {
				return false
			}
		} else if !w.skip() {
			return false
		}
	}
	return w.close()
}

func (w *walker) collect(path []string, value string) {
	if len(path) == 0 {
		w.found = append(w.found, value)
	}
}

// close reads a closing delimiter.
func (w *walker) close() bool {
	_, err := w.dec.Token()
	return err == nil
}

// skip reads one value and throws it away.
func (w *walker) skip() bool {
	for depth := 0; ; {
		token, err := w.dec.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return true
		}
	}
}
