//go:build go1.25

package fila

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
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

func TestAWrongSettingOfTLSIsNamedAtOnce(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	addr := serveTLS(t, a, false)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go server.Serve(plain)
	defer server.Stop()
	certificate, _ := a.issue("client.test")
	_, otherKey := a.issue("other.test")
	for name, wrong := range map[string]struct {
		addr, said string
		opts       []Option
	}{
		"unknown authority": {addr, "no authority that this client trusts has signed it", []Option{WithTLS(), WithServerName("broker.test")}},
		"another authority": {addr, "no authority that this client trusts has signed it", []Option{WithCA(stranger.file()), WithServerName("broker.test")}},
		"another name":      {addr, "it is not made out to other.test", []Option{WithCA(a.file()), WithServerName("other.test")}},
		"TLS to plain":      {"https://" + plain.Addr().String(), "speaks without TLS: write http:// instead of https://", nil},
		"plain to TLS":      {addr, "speaks TLS: write https:// instead of http://", nil},
		"no certificate":    {addr, "holds no certificate in PEM form", []Option{WithCA(otherKey)}},
		"another key":       {addr, "is not that of the certificate in", []Option{WithClientCertificate(certificate, otherKey)}},
	} {
		began := time.Now()
		_, err := Connect(wrong.addr, append(wrong.opts, WithConnectTimeout(time.Minute))...)
		if err == nil || !strings.Contains(err.Error(), wrong.said) {
			t.Errorf("%s: %v", name, err)
		}
		if time.Since(began) > 30*time.Second {
			t.Errorf("%s: waited out the connect timeout", name)
		}
	}
}

func TestTheEnvironmentNamesTheBrokerAndItsAuthorityWhereTheProgramDoesNot(t *testing.T) {
	a := newAuthority(t)
	addr := serveTLS(t, a, false)
	t.Setenv("FILA_ADDR", "https://"+addr)
	t.Setenv("FILA_CA_FILE", a.file())
	client, err := Connect("", WithServerName("broker.test"))
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	if _, err := Connect("https://"+addr, WithServerName("broker.test"), WithCA(newAuthority(t).file())); err == nil {
		t.Error("the program's own authority must win")
	}
}

func TestAnotherOfFilasPortsIsNamed(t *testing.T) {
	for answer, said := range map[string]string{
		"-ERR unknown command 'PRI'\r\n": "speaks the Redis protocol", "HTTP/1.1 400 Bad Request\r\n\r\n": "is a web server",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = connection.Read(make([]byte, 64))
				_, _ = connection.Write([]byte(answer))
				connection.Close()
			}
		}()
		if _, err := Connect(listener.Addr().String()); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}
