package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/examples/upload"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// header stands in front of what is uploaded.
const header = "not part of the upload\n"

// content is larger than what the Transport would keep in memory.
func content() []byte {
	data := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return data
}

// keep is a server that keeps what it gets.
func keep(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	mockserver.Did(r.Context(), "kept", data)
	w.WriteHeader(http.StatusCreated)
}

// run gives f a server, a client of it through base (nil: the server's own) and
// an open file that stands behind the header.
func run(t *testing.T, base func(*mockserver.Server) http.RoundTripper, f func(*testing.T, *mockserver.Server, *idem.Client, *os.File)) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, append([]byte(header), content()...), 0o600))
		file, err := os.Open(name)
		require.NoError(t, err)
		_, err = file.Seek(int64(len(header)), io.SeekStart)
		require.NoError(t, err)

		server := mockserver.New(t, mockserver.Config{Handler: http.HandlerFunc(keep)})
		transport := trouble.Transport(server)
		if base != nil {
			transport.Base = base(server)
		}
		client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: transport})
		require.NoError(t, err)
		f(t, server, client, file)
		assert.ErrorIs(t, file.Close(), os.ErrClosed)
	})
}

func TestUpload(t *testing.T) {
	run(t, nil, func(t *testing.T, server *mockserver.Server, client *idem.Client, file *os.File) {
		trouble.Meets(server, "POST /files")
		in := idem.Open()
		res, err := upload.Upload(t.Context(), client, in, server.URL+"/files", file)
		require.NoError(t, err)
		assert.Equal(t, http.StatusCreated, res.Status)
		trouble.Check(t, server, in)
		assert.True(t, bytes.Equal(content(), server.Effects(in.Key())[0].Value.([]byte)), "kept is what was sent")
	})
}

// The connection dies half way through the file.
func TestCutHalfWay(t *testing.T) {
	var dials atomic.Int32
	cutting := func(server *mockserver.Server) http.RoundTripper {
		return &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := server.Dial(ctx, network, address)
				if dials.Add(1) <= 2 && err == nil {
					conn = &cut{Conn: conn, left: 1 << 20}
				}
				return conn, err
			},
		}
	}
	run(t, cutting, func(t *testing.T, server *mockserver.Server, client *idem.Client, file *os.File) {
		in := idem.Open()
		res, err := upload.Upload(t.Context(), client, in, server.URL+"/files", file)
		require.NoError(t, err)
		assert.Equal(t, 3, res.Attempts)
		require.Len(t, server.Effects(""), 1)
		assert.True(t, bytes.Equal(content(), server.Effects(in.Key())[0].Value.([]byte)))
	})
}

// A cut connection ends after so many bytes.
type cut struct {
	net.Conn
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		return n, errors.Join(errors.New("the connection was cut"), c.Close())
	}
	return n, err
}

// A slow network is no reason to give up: the clock of the attempt starts anew
// with every read.
func TestSlow(t *testing.T) {
	slow := func(server *mockserver.Server) http.RoundTripper {
		return &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := server.Dial(ctx, network, address)
				return &modem{conn}, err
			},
		}
	}
	run(t, slow, func(t *testing.T, server *mockserver.Server, client *idem.Client, file *os.File) {
		began := time.Now()
		res, err := upload.Upload(t.Context(), client, idem.Open(), server.URL+"/files", file)
		require.NoError(t, err)
		assert.Equal(t, 1, res.Attempts)
		assert.Greater(t, time.Since(began), 10*time.Minute)
	})
}

// A modem takes its time for everything.
type modem struct{ net.Conn }

func (m *modem) Write(p []byte) (int, error) {
	time.Sleep(10 * time.Second)
	return m.Conn.Write(p)
}

// Two files never go out under one key: if the file is written to meanwhile, the
// upload ends, and says that the outcome is unknown.
func TestChangedMeanwhile(t *testing.T) {
	run(t, nil, func(t *testing.T, server *mockserver.Server, client *idem.Client, file *os.File) {
		server.On("POST /files").Then("hang@stored")
		in := idem.Open()
		done := make(chan error)
		go func() {
			_, err := upload.Upload(t.Context(), client, in, server.URL+"/files", file)
			done <- err
		}()
		require.NoError(t, server.Await(t.Context(), in.Key(), 1, mockserver.Stored))
		appended, err := os.OpenFile(file.Name(), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = appended.WriteString("more")
		require.NoError(t, errors.Join(err, appended.Close()))
		assert.ErrorIs(t, <-done, idem.ErrNotRepeatable)
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
		assert.Len(t, server.Requests(""), 1)
	})
}

func TestRefused(t *testing.T) {
	run(t, nil, func(t *testing.T, server *mockserver.Server, client *idem.Client, file *os.File) {
		server.On("POST /files").Then("403@received")
		res, err := upload.Upload(t.Context(), client, idem.Open(), server.URL+"/files", file)
		assert.Error(t, err)
		assert.Equal(t, idem.Answered, res.Outcome)
		assert.Equal(t, http.StatusForbidden, res.Status)
	})
	run(t, nil, func(t *testing.T, server *mockserver.Server, client *idem.Client, file *os.File) {
		res, err := upload.Upload(t.Context(), client, idem.Open(), ":", file)
		assert.Error(t, err)
		assert.Equal(t, idem.NotExecuted, res.Outcome)
		assert.Empty(t, server.Requests(""))
	})
}
