package mockserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"
)

// authority signs the server's certificates. They are made when they are needed
// and dated by the clock of that moment, because in a testing/synctest bubble it
// is the year 2000. Only the server's own clients trust it.
type authority struct {
	mu    sync.Mutex
	key   *ecdsa.PrivateKey
	root  *x509.Certificate
	leafs map[string]*tls.Certificate // by host name and flaw
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("mockserver: no key: %w", err)
	}
	a := &authority{key: key, leafs: map[string]*tls.Certificate{}}
	a.root, err = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "mockserver root"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return a, err
}

// sign makes a certificate; with no parent it is its own.
func (a *authority) sign(c, parent *x509.Certificate) (*x509.Certificate, error) {
	now := time.Now()
	c.SerialNumber = big.NewInt(now.UnixNano())
	c.NotBefore = now.Add(-48 * time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = now.AddDate(10, 0, 0)
	}
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("mockserver: no certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// pool is what a client of the server trusts.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return pool
}

// leaf returns the certificate for a host name, or one with the flaw of that
// name. Clients reach the server under any name, so any name has one.
func (a *authority) leaf(host, flaw string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leafs[host+" "+flaw]; c != nil {
		return c, nil
	}
	template, signer := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "mockserver"},
		DNSNames:    []string{host},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a
	if host == "" { // addressed by number
		template.DNSNames = []string{"localhost"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	switch flaw {
	case "expired":
		template.NotAfter = time.Now().Add(-time.Hour)
	case "wrongname":
		template.DNSNames, template.IPAddresses = []string{"wrong.invalid"}, nil
	case "untrusted":
		stranger, err := newAuthority()
		if err != nil {
			return nil, err
		}
		signer = stranger
	}
	c, err := signer.sign(template, signer.root)
	if err != nil {
		return nil, err
	}
	leaf := &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: signer.key, Leaf: c}
	a.leafs[host+" "+flaw] = leaf
	return leaf, nil
}

// handshake makes a TLS connection of a raw one. A fault of the handshake other
// than a flaw of the certificate comes once the client's first message is read.
func (s *Server) handshake(ctx context.Context, raw net.Conn, faults []clause) (*tls.Conn, error) {
	flaw := ""
	for _, f := range faults {
		switch f.action {
		case "untrusted", "expired", "wrongname":
			flaw = f.action
		default:
			return nil, spoil(raw, f)
		}
	}
	config := &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.authority.leaf(hello.ServerName, flaw)
		},
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
	}
	if s.http2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	c := tls.Server(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		linger(raw)
		return nil, err
	}
	return c, nil
}

// spoil reads the client's first message and breaks the handshake.
func spoil(raw net.Conn, f clause) error {
	head := make([]byte, 5)
	if _, err := io.ReadFull(raw, head); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, raw, int64(binary.BigEndian.Uint16(head[3:]))); err != nil {
		return err
	}
	answers := map[string][]byte{
		"alert":   {21, 3, 3, 0, 2, 2, byte(f.code & 0xff)}, // a fatal alert (RFC 8446, 6)
		"garbage": bytes.Repeat([]byte("?"), 16),
		"plain":   []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
	}
	switch f.action {
	case "stall":
		_, _ = io.Copy(io.Discard, raw) // until the client or Close ends it
	case "reset":
		reset(raw)
	default:
		_, _ = raw.Write(answers[f.action])
	}
	linger(raw)
	return errors.New("mockserver: the handshake was broken by a fault")
}

// linger sends a FIN, waits for the client's and closes. A close with unread
// input would be a RST.
func linger(raw net.Conn) {
	if w, ok := raw.(interface{ CloseWrite() error }); ok && w.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, raw)
	}
	_ = raw.Close()
}
