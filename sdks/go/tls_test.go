package fila

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TLS needs a kernel's sockets: these tests run in real time, and fast.

type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.certificate, _ = x509.ParseCertificate(der)
	return a
}

func (a *authority) file() string { return a.write("ca.pem", "CERTIFICATE", a.certificate.Raw) }

func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue returns the files of a certificate for this name, and its key.
func (a *authority) issue(name string) (certificateFile, keyFile string) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	encoded, _ := x509.MarshalECPrivateKey(key)
	return a.write("certificate.pem", "CERTIFICATE", der), a.write("key.pem", "EC PRIVATE KEY", encoded)
}

// serveTLS starts a broker that wants a certificate of the authority, if askClient.
func serveTLS(t *testing.T, a *authority, askClient bool) string {
	pair, err := tls.LoadX509KeyPair(a.issue("broker.test"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if askClient {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AddCert(a.certificate)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func TestTLSConnectsWithTheRightSettings(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.issue("client.test")
	plain, mutual := serveTLS(t, a, false), serveTLS(t, a, true)
	for name, connect := range map[string]func() (*Client, error){
		"server name": func() (*Client, error) { return Connect(plain, WithCA(a.file()), WithServerName("broker.test")) },
		"https": func() (*Client, error) {
			return Connect("https://"+plain, WithCA(a.file()), WithServerName("broker.test"))
		},
		"client certificate": func() (*Client, error) {
			return Connect(mutual, WithCA(a.file()), WithServerName("broker.test"), WithClientCertificate(certificate, key))
		},
	} {
		client, err := connect()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		client.Close()
	}
}

func TestATLSMismatchIsAnErrorAtOnceThatSaysWhatToCheck(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	addr := serveTLS(t, a, false)
	for name, opts := range map[string][]Option{
		"unknown authority": {WithTLS(), WithServerName("broker.test")},
		"another authority": {WithCA(stranger.file()), WithServerName("broker.test")},
		"another name":      {WithCA(a.file()), WithServerName("other.test")},
	} {
		began := time.Now()
		_, err := Connect(addr, opts...)
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "do not agree on TLS") {
			t.Errorf("%s: %v", name, err)
		}
		if time.Since(began) > 5*time.Second {
			t.Errorf("%s: waited out the connect timeout", name)
		}
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go server.Serve(plain)
	defer server.Stop()
	if _, err := Connect("https://"+plain.Addr().String(), WithConnectTimeout(time.Second)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("TLS to a plain broker: %v", err)
	}
	if _, err := Connect(addr, WithConnectTimeout(time.Second)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("plain to a TLS broker: %v", err)
	}
}
