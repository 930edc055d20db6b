package fila

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// How long one look at a port may take.
	diagnosisTime = 400 * time.Millisecond
	// While attempts to connect fail, the port is asked for the reason this often: what listens there may change.
	diagnoseEvery = time.Second

	settingsFrame = 4
)

var greeting = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")

// diagnosis tells why nobody answers: it asks the port itself when gRPC's attempts fail. A connection is opened and
// greeted as gRPC greets, by TLS where the client speaks it. Only what waiting cannot mend is told: a broker that is
// not started yet, or stops, says nothing of this kind.
type diagnosis struct {
	hosts []string
	tls   *tls.Config // nil without TLS
	dial  func(context.Context, string) (net.Conn, error)

	mu       sync.Mutex
	asked    time.Time
	sentence string
}

// why returns the sentence that says what is wrong with the client's settings; empty where none is found wrong. It
// looks once in diagnoseEvery, and answers between two looks what the last one found.
func (d *diagnosis) why() (sentence string, isNew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) < diagnoseEvery {
		return d.sentence, false
	}
	d.sentence = ""
	for _, host := range d.hosts {
		if d.sentence = d.ask(host); d.sentence == "" {
			break // this one may answer soon
		}
	}
	d.asked = time.Now()
	return d.sentence, true
}

func (d *diagnosis) open(host string) (net.Conn, error) {
	ctx, stop := context.WithTimeout(context.Background(), diagnosisTime)
	defer stop()
	dial := d.dial
	if dial == nil {
		dial = func(ctx context.Context, host string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", host)
		}
	}
	connection, err := dial(ctx, host)
	if err == nil {
		_ = connection.SetDeadline(time.Now().Add(diagnosisTime))
	}
	return connection, err
}

func (d *diagnosis) ask(host string) string {
	if d.tls == nil {
		return d.askInPlain(host)
	}
	config := d.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(host)
	}
	_, err := d.greetByTLS(host, config)
	var rejected *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &rejected):
		return fmt.Sprintf("the certificate of %s is not accepted: %s", host, rejection(rejected.Err, config.ServerName))
	case errors.As(err, &notTLS):
		return d.askInPlain(host)
	case strings.Contains(err.Error(), "remote error: tls: "):
		_, alert, _ := strings.Cut(err.Error(), "remote error: tls: ")
		return d.ofAlert(host, alert)
	case isTimeout(err):
		return ""
	}
	return d.askInPlain(host)
}

func isTimeout(err error) bool {
	var failure net.Error
	return errors.As(err, &failure) && failure.Timeout()
}

func (d *diagnosis) greetByTLS(host string, config *tls.Config) ([]byte, error) {
	plain, err := d.open(host)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	config.NextProtos = []string{"h2"}
	connection := tls.Client(plain, config)
	if err := connection.Handshake(); err != nil {
		return nil, err
	}
	// A broker that wants another certificate of the client says so only here, and closes: a client that writes then
	// loses what it said.
	return read(connection)
}

func greet(connection net.Conn) ([]byte, error) {
	if _, err := connection.Write(greeting); err != nil {
		return nil, err
	}
	return read(connection)
}

func read(connection net.Conn) ([]byte, error) {
	answer := make([]byte, 64)
	n, err := connection.Read(answer)
	return answer[:n], err
}

// rejection says why a certificate is not accepted, in the words of all SDKs.
func rejection(err error, name string) string {
	var unknown x509.UnknownAuthorityError
	var otherName x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "no authority that this client trusts has signed it"
	case errors.As(err, &otherName):
		return "it is not made out to " + name
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if time.Now().Before(invalid.Cert.NotBefore) {
			return "it is not valid yet"
		}
		return "it has expired"
	}
	return err.Error()
}

// ofAlert is what a broker's alert says of the certificate that the client showed, or did not show.
func (d *diagnosis) ofAlert(host, alert string) string {
	shows := len(d.tls.Certificates) > 0 || d.tls.GetClientCertificate != nil
	isMissing := strings.Contains(alert, "certificate required") || strings.Contains(alert, "handshake failure")
	switch {
	case isMissing && !shows:
		return fmt.Sprintf("the broker at %s asks for a client certificate: give one, with its key", host)
	case isMissing, strings.Contains(alert, "unknown certificate authority"):
		// crypto/tls keeps back a certificate that none of the authorities has signed which the broker names.
		return fmt.Sprintf("the broker at %s does not accept the client certificate: "+
			"no authority that the broker trusts has signed it", host)
	case strings.Contains(alert, "certificate"):
		return fmt.Sprintf("the broker at %s does not accept the client certificate: %s", host, alert)
	}
	return ""
}

func (d *diagnosis) askInPlain(host string) string {
	connection, err := d.open(host)
	if err != nil {
		return ""
	}
	answer, _ := greet(connection)
	connection.Close()
	switch {
	case bytes.HasPrefix(answer, []byte("-")), bytes.HasPrefix(answer, []byte("+")), bytes.HasPrefix(answer, []byte("$")):
		return host + " speaks the Redis protocol; the client wants the gRPC port, 5555 unless changed"
	case bytes.HasPrefix(answer, []byte("HTTP/1")):
		return host + " is a web server, such as the metrics page; the gRPC port is 5555 unless changed"
	case len(answer) > settingsFrame && answer[3] == settingsFrame:
		if d.tls != nil {
			return fmt.Sprintf("the broker at %s speaks without TLS: write http:// instead of https://", host)
		}
		return ""
	case d.tls != nil:
		return ""
	}
	if !bytes.HasPrefix(answer, []byte("\x15\x03")) {
		// Some servers with TLS say nothing to what is no handshake.
		plain, err := d.open(host)
		if err != nil || len(answer) > 0 {
			return ""
		}
		defer plain.Close()
		anybody := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // only asks whether it is TLS
		if tls.Client(plain, anybody).Handshake() != nil {
			return ""
		}
	}
	return host + " speaks TLS: write https:// instead of http://"
}
