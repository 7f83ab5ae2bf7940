package mockserver

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// streamHeader tells the handler which HTTP/2 stream its request came on:
// http.Server does not. frames adds it, the server removes it.
const streamHeader = "Mock-Stream"

// The parts of HTTP/2 (RFC 9113) that are needed to name streams and to end them.
const (
	data         = 0x0
	headersFrame = 0x1
	rstFrame     = 0x3
	settings     = 0x4
	goAwayFrame  = 0x7
	continuation = 0x9

	endStream  = 0x1 // of data and headers; "ack" of settings
	endHeaders = 0x4
	padded     = 0x8

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frames stands between a connection and http.Server and passes whole frames.
// On the way in it adds streamHeader to each request; on the way out it silences
// streams that a fault has ended. A connection that does not begin with the
// preface of HTTP/2 passes as it is.
type frames struct {
	c        *conn
	proto    atomic.Uint32 // unknown, http1, http2
	in, out  []byte        // read but not yet whole; whole but not yet taken
	begun    uint32        // the newest stream, of which there may be only a part of a frame
	last     uint32        // the newest stream
	opening  bool          // the header block being read opens a stream
	complete bool          // a request was read whole
	settled  chan struct{} // closed when the client has confirmed our settings

	// The rest is guarded by c.wmu.
	cond  *sync.Cond
	wbuf  []byte          // written but not yet whole
	muted map[uint32]bool // streams that a fault has ended
	sent  map[uint32]int  // bytes of body on the wire; present once the head is
}

const (
	unknown uint32 = iota
	http1
	http2
)

func newFrames(c *conn) *frames {
	return &frames{
		c: c, settled: make(chan struct{}), cond: sync.NewCond(&c.wmu),
		muted: map[uint32]bool{}, sent: map[uint32]int{},
	}
}

// on reports whether HTTP/2 runs on the connection.
func (f *frames) on() bool { return f.proto.Load() == http2 }

// read reads into p what is whole.
func (f *frames) read(c net.Conn, p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.proto.Load() == http1 {
			return c.Read(p)
		}
		var b [4096]byte
		n, err := c.Read(b[:])
		f.in = append(f.in, b[:n]...)
		f.take()
		if err != nil && len(f.out) == 0 {
			return 0, err
		}
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

// take moves what is whole from in to out.
func (f *frames) take() {
	if f.proto.Load() == unknown {
		n := min(len(f.in), len(preface))
		switch {
		case string(f.in[:n]) != preface[:n]:
			f.proto.Store(http1)
		case n < len(preface):
			return
		default:
			f.proto.Store(http2)
			f.out, f.in = append(f.out, preface...), f.in[n:]
		}
	}
	if f.proto.Load() == http1 {
		f.out, f.in = append(f.out, f.in...), nil
		return
	}
	for len(f.in) >= 9 {
		if id := streamOf(f.in); f.in[3] == headersFrame && id > f.begun {
			f.begun = id
			f.c.s.beginHead(f.c, id)
		}
		if len(f.in) < 9+length(f.in) {
			return
		}
		fr := f.in[:9+length(f.in)]
		f.in = f.in[len(fr):]
		f.out = append(f.out, f.inbound(fr)...)
	}
}

// inbound returns the frame as http.Server is to see it.
func (f *frames) inbound(fr []byte) []byte {
	kind, flags, id := fr[3], fr[4], streamOf(fr)
	if (kind == headersFrame || kind == data) && flags&endStream != 0 {
		f.complete = true
	}
	switch kind {
	case settings:
		if flags&endStream != 0 {
			select {
			case <-f.settled:
			default:
				close(f.settled)
			}
		}
		return fr
	case headersFrame:
		f.opening = id > f.last // not a trailer
		f.last = max(f.last, id)
	case continuation:
	default:
		return fr
	}
	if flags&endHeaders == 0 || !f.opening {
		return fr
	}
	end := len(fr)
	if kind == headersFrame && flags&padded != 0 && end > 9 {
		end -= int(fr[9])
	}
	if end < 9 {
		return fr // padded beyond its length: http.Server will say so
	}
	field := literal("mock-stream", strconv.FormatUint(uint64(id), 10))
	fr = append(bytes.Clone(fr[:end]), append(field, fr[end:]...)...)
	copy(fr, threeBytes(len(fr)-9))
	return fr
}

// write passes what is whole, except on muted streams.
func (f *frames) write(c net.Conn, p []byte) (int, error) {
	f.wbuf = append(f.wbuf, p...)
	var out []byte
	for len(f.wbuf) >= 9 && len(f.wbuf) >= 9+length(f.wbuf) {
		fr := f.wbuf[:9+length(f.wbuf)]
		f.wbuf = f.wbuf[len(fr):]
		kind, id := fr[3], streamOf(fr)
		if id != 0 && f.muted[id] {
			continue
		}
		out = append(out, fr...)
		switch kind {
		case headersFrame:
			f.sent[id] += 0
		case data:
			f.sent[id] += len(fr) - 9
		}
		if (kind == headersFrame || kind == data) && fr[4]&endStream != 0 || kind == rstFrame {
			delete(f.sent, id)
			f.c.s.endHead(headID{f.c, id}, 0, false)
		}
	}
	f.cond.Broadcast()
	if len(out) > 0 {
		if _, err := c.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func length(fr []byte) int      { return int(fr[0])<<16 | int(fr[1])<<8 | int(fr[2]) }
func streamOf(fr []byte) uint32 { return binary.BigEndian.Uint32(fr[5:9]) &^ (1 << 31) }

// threeBytes spells the length of a frame.
func threeBytes(n int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(n))[1:] //nolint:gosec // frames are short
}

// frame spells a frame.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	fr := append(threeBytes(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(fr, stream), payload...)
}

func rstStream(stream, code uint32) []byte {
	return frame(rstFrame, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

func goAway(last, code uint32) []byte {
	payload := binary.BigEndian.AppendUint32(nil, last)
	return frame(goAwayFrame, 0, 0, binary.BigEndian.AppendUint32(payload, code))
}

func headers(stream uint32, flags byte, block []byte) []byte {
	return frame(headersFrame, flags|endHeaders, stream, block)
}

// pieces cuts a body into what one frame of data may hold.
func pieces(body []byte) [][]byte { return slices.Collect(slices.Chunk(body, 1<<14)) }

// literal spells a header field that stays out of the dynamic table (RFC 7541,
// 6.2.2).
func literal(name, value string) []byte {
	b := append([]byte{0}, hpackLength(len(name))...)
	b = append(append(b, name...), hpackLength(len(value))...)
	return append(b, value...)
}

// hpackLength spells the length of a plain string (RFC 7541, 5.1).
func hpackLength(n int) []byte {
	const most = 1<<7 - 1
	if n < most {
		return []byte{byte(n)} //nolint:gosec // below 127
	}
	return binary.AppendUvarint([]byte{most}, uint64(n-most))
}
