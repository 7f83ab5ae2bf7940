package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
)

// defaultMax bounds what is buffered of a body, either way.
const defaultMax = 1 << 20

// A source gives the body of one request as often as it is needed, the same
// bytes each time, and owns the caller's body: it is closed exactly once.
//
// Bodies in memory are never wrapped: net/http knows them and sends head and
// body in one write. The others are wrapped, to tell the caller's reader's
// error from the network's and to make sure that the bytes stay the same.
type source struct {
	kind     sourceKind
	buffered bool // it was a stream, and is in memory now
	once     bool // it can be sent only once, because of whyOnce
	shared   bool // again gives the same reader each time
	opened   bool // what again gave was given to a send
	hashed   bool // sum is that of the whole body, under seed

	original  io.ReadCloser
	readFirst []byte       // of original, where that is a stream
	refs      atomic.Int32 // open readers of original, and the call itself
	closed    atomic.Bool  // original is

	held  held                          // kinds inBytes and inText
	again func() (io.ReadCloser, error) // kind inGetBody: the caller's GetBody
	file  *io.SectionReader             // kind inSections
	stat  fs.FileInfo                   // of the file

	size    int64 // -1: not known
	most    int64 // what may be read into memory
	whyOnce string
	seed    maphash.Seed
	sum     uint64
}

type sourceKind uint8

const (
	noBody     sourceKind = iota
	inBytes               // bytes.Reader, bytes.Buffer, or buffered here
	inText                // strings.Reader
	inGetBody             // GetBody makes it again
	inSections            // a file, or anything that can be read at an offset
	inStream              // once
)

// errBodyChanged means that the body is not what it was at the first send.
var errBodyChanged = because(ErrNotRepeatable, "the body is not what it was at first")

// own takes over r's body, which is to be closed whatever comes.
func (s *source) own(r *http.Request) {
	s.original = r.Body
	s.refs.Store(1)
}

// take finds out how r's body can be sent again; one that can only be read once
// is read into memory if it has at most most bytes. With snapshot that goes for
// one with GetBody as well: some give the same reader again each time, others
// bytes that are not those of the body.
func (s *source) take(r *http.Request, most int64, snapshot bool) error {
	s.most, s.size = most, r.ContentLength
	if r.Body == nil || r.Body == http.NoBody {
		if snapshot && r.ContentLength > 0 { // net/http would send none
			return fmt.Errorf("idem: there is no body, ContentLength says %d bytes", r.ContentLength)
		}
		return nil
	}
	inner := unwrapNopCloser(r.Body)
	switch b := inner.(type) {
	case *bytes.Reader:
		rest := *b // reading moves it
		_, _ = rest.WriteTo(&s.held)
		s.inMemory(s.held.data)
	case *bytes.Buffer:
		s.inMemory(b.Bytes())
	case *strings.Reader:
		rest := *b
		_, _ = rest.WriteTo(&s.held)
		s.kind, s.size = inText, int64(len(s.held.text))
	default:
		switch {
		case r.GetBody != nil && (!snapshot || r.ContentLength > most):
			s.kind, s.again = inGetBody, r.GetBody
			return nil
		case r.GetBody != nil:
			err := s.buffer(r)
			if s.once { // too long after all
				s.kind, s.again, s.once = inGetBody, r.GetBody, false
			}
			return err
		case s.asFile(inner, r.ContentLength):
		default:
			return s.buffer(r)
		}
	}
	if r.ContentLength > 0 && r.ContentLength != s.size && !s.takeAnew(r) {
		return fmt.Errorf("idem: the body has %d bytes, ContentLength says %d", s.size, r.ContentLength)
	}
	return nil
}

// takeAnew takes the body from GetBody, if an earlier call with the same
// http.Request has read the one in memory: what is left of it is the other's end.
func (s *source) takeAnew(r *http.Request) bool {
	if !s.inMem() || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil || body == nil {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(body, r.ContentLength+1))
	_ = body.Close()
	left := s.held.data
	if s.kind == inText {
		left = []byte(s.held.text)
	}
	if err != nil || int64(len(data)) != r.ContentLength || !bytes.HasSuffix(data, left) {
		return false
	}
	s.inMemory(data)
	s.buffered = true
	return true
}

func (s *source) inMemory(data []byte) {
	s.kind, s.held.data, s.size = inBytes, data, int64(len(data))
}

// held is what a reader in memory holds: bytes.Reader and strings.Reader write
// it in one piece, and without a copy.
type held struct {
	data []byte
	text string
}

func (h *held) Write(p []byte) (int, error)       { h.data = p; return len(p), nil }
func (h *held) WriteString(s string) (int, error) { h.text = s; return len(s), nil }

// asFile reads what can be read at an offset through sections.
func (s *source) asFile(inner io.Reader, length int64) bool {
	file, ok := inner.(interface {
		io.ReaderAt
		io.Seeker
	})
	if !ok {
		return false
	}
	from, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return false // a pipe, say
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || end < from {
		return false
	}
	if _, err = file.Seek(from, io.SeekStart); err != nil {
		return false
	}
	if end == from {
		var one [1]byte
		if n, _ := file.ReadAt(one[:], from); n > 0 {
			return false // a file that does not know its length: of a device, of /proc, of some networks
		}
	}
	s.kind, s.size = inSections, end-from
	if length > 0 && length < s.size {
		s.size = length
	}
	s.file, s.stat = io.NewSectionReader(file, from, s.size), statOf(file)
	return true
}

// section returns a new reader of a body of kind inSections.
func (s *source) section() *io.SectionReader { return io.NewSectionReader(s.file.Outer()) }

func statOf(file any) fs.FileInfo {
	if f, ok := file.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil {
			return info
		}
	}
	return nil
}

// buffer reads a stream into memory, or leaves it a stream if it is too long.
func (s *source) buffer(r *http.Request) error {
	s.kind = inStream
	most := s.most
	length := r.ContentLength
	if length <= 0 {
		length = -1 // net/http too takes 0 with a body for "not known"
	}
	if most < 0 || length > most {
		s.once, s.whyOnce = true, "its body is a stream that is not kept in memory"
		if most >= 0 {
			s.whyOnce = fmt.Sprintf("its body is a stream of %d bytes, more than MaxBody (%d)", length, most)
		}
		return nil
	}
	// A body that does not come must not outlast the caller's patience.
	ctx, stop := withCancel(r.Context(), r)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = s.closeOriginal() })()
	var data []byte
	var err error
	if length >= 0 {
		data = make([]byte, length)
		var n int
		if n, err = io.ReadFull(r.Body, data); err == nil {
			err = expectEOF(r.Body)
		} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("idem: the body ends after %d bytes, ContentLength says %d", n, length)
		}
	} else {
		data, err = io.ReadAll(io.LimitReader(r.Body, most+1))
	}
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	if err != nil {
		return err
	}
	if int64(len(data)) > most {
		s.once, s.whyOnce = true, fmt.Sprintf("its body is a stream of more than MaxBody (%d bytes)", most)
		s.readFirst = data
		return nil
	}
	s.inMemory(data)
	s.buffered = true
	return nil
}

var errTooLong = errors.New("idem: the body is longer than its ContentLength")

func expectEOF(r io.Reader) error {
	var one [1]byte
	for range 100 {
		n, err := r.Read(one[:])
		if n > 0 {
			return errTooLong
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// small reports whether the body leaves with the head: net/http writes both in
// pieces of 4 KiB.
func (s *source) small() bool { return s.kind == noBody || s.inMem() && s.size <= 2<<10 }

// inMem reports whether the body is in memory.
func (s *source) inMem() bool { return s.kind == inBytes || s.kind == inText }
