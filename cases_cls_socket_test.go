package idem_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// hashicorp/go-retryablehttp#201
func TestCase_CLS_1(t *testing.T) {
	for name, trust := range map[string]func(*httptest.Server, *tls.Config){
		"unknown authority": func(*httptest.Server, *tls.Config) {},
		"other name": func(s *httptest.Server, c *tls.Config) {
			c.RootCAs, c.ServerName = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, "other.invalid"
		},
		"own verification": func(_ *httptest.Server, c *tls.Config) {
			c.InsecureSkipVerify = true
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
				return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
			}
		},
	} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyed %v", name, keyed), func(t *testing.T) {
				var hits, dials atomic.Int32
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						dials.Add(1)
					}
				}
				s.StartTLS()
				t.Cleanup(s.Close)
				tr, base := socketTransport(t)
				base.TLSClientConfig = &tls.Config{}
				trust(s, base.TLSClientConfig)
				var in *idem.Intent
				if keyed {
					in = idem.Open()
				}
				_, err := (&http.Client{Transport: tr}).Do(keyedPost(t, in, s.URL, strings.NewReader("{}"))) //nolint:bodyclose // there is none
				e := theError(t, err)
				var verification *tls.CertificateVerificationError
				require.ErrorAs(t, err, &verification)
				require.EqualValues(t, 1, dials.Load())
				require.Zero(t, hits.Load())
				require.Equal(t, 1, e.Attempts)
				require.Zero(t, e.Sends)
				require.Equal(t, idem.NotExecuted, e.Outcome)
			})
		}
	}
}

// A neighbour of CLS-1: a peer that breaks the handshake off is not a wrong
// certificate, and nothing was sent.
func TestCase_CLS_1_handshakeCut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var dials atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			dials.Add(1)
			_ = c.Close()
		}
	}()
	for _, keyed := range []bool{true, false} {
		dials.Store(0)
		tr, _ := socketTransport(t)
		var in *idem.Intent
		if keyed {
			in = idem.Open()
		}
		_, err = (&http.Client{Transport: tr}).Do(keyedPost(t, in, "https://"+l.Addr().String(), strings.NewReader("{}"))) //nolint:bodyclose // there is none
		e := theError(t, err)
		require.Equal(t, idem.NotExecuted, e.Outcome)
		require.Zero(t, e.Sends)
		require.Equal(t, 3, e.Attempts)
		require.EqualValues(t, 3, dials.Load())
	}
}

// A server that does not take the client's certificate will not take it the next
// time: each call ends with the first alert that says so. TLS 1.3 tells it only
// when the request may have left.
func TestTransport_OwnCertificateRefused(t *testing.T) {
	for name, c := range map[string]struct {
		version uint16
		auth    tls.ClientAuthType
		present bool
	}{
		"TLS 1.2, of no known authority": {tls.VersionTLS12, tls.RequireAndVerifyClientCert, true},
		"TLS 1.3, of no known authority": {tls.VersionTLS13, tls.RequireAndVerifyClientCert, true},
		"TLS 1.3, none":                  {tls.VersionTLS13, tls.RequireAnyClientCert, false},
	} {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int32
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.TLS = &tls.Config{ClientAuth: c.auth, MaxVersion: c.version, ClientCAs: x509.NewCertPool()}
			s.StartTLS()
			t.Cleanup(s.Close)
			tr, base := socketTransport(t)
			base.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			if c.present { // whatever authorities the server would like
				base.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					return &s.TLS.Certificates[0], nil
				}
			}
			in := idem.Open()
			_, err := tr.RoundTrip(keyedPost(t, in, s.URL, strings.NewReader("{}"))) //nolint:bodyclose // there is none
			e := theError(t, err)
			require.Zero(t, hits.Load())
			for _, a := range in.Attempts()[:e.Attempts-1] {
				require.NotContains(t, a.Err.Error(), "certificate", "attempt %d met the alert", a.Number)
			}
			if c.version == tls.VersionTLS12 {
				require.Equal(t, 1, e.Attempts)
				require.Equal(t, idem.NotExecuted, e.Outcome)
			}
		})
	}
}
