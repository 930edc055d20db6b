package fila

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
)

// tlsFiles are read when the client connects.
type tlsFiles struct {
	ca, certificate, key, serverName string
}

// WithTLS uses TLS, verified against the system's roots unless WithCA, or the environment's FILA_CA_FILE, names
// others. An address that begins with https:// does the same.
func WithTLS() Option {
	return func(s *settings) {
		if s.tls == nil {
			s.tls = &tls.Config{}
		}
	}
}

// WithTLSConfig uses TLS with a configuration of the program's own.
func WithTLSConfig(config *tls.Config) Option {
	return func(s *settings) { s.tls = config.Clone() }
}

// WithCA uses TLS and trusts the certificate authorities in this PEM file, and no others.
func WithCA(file string) Option {
	return func(s *settings) {
		WithTLS()(s)
		s.tlsFiles.ca = file
	}
}

// WithClientCertificate uses TLS and presents this certificate; both files are PEM. Without it, where TLS is spoken, it
// is the one of the environment's FILA_CERT_FILE and FILA_KEY_FILE.
func WithClientCertificate(certificateFile, keyFile string) Option {
	return func(s *settings) {
		WithTLS()(s)
		s.tlsFiles.certificate, s.tlsFiles.key = certificateFile, keyFile
	}
}

// WithServerName uses TLS and expects this name in the broker's certificate, instead of the address's host.
func WithServerName(name string) Option {
	return func(s *settings) {
		WithTLS()(s)
		s.tlsFiles.serverName = name
	}
}

// tlsConfig returns nil for a connection without TLS.
func (s *settings) tlsConfig() (*tls.Config, error) {
	if s.tls == nil {
		return nil, nil
	}
	config := s.tls.Clone()
	s.useEnvironment()
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	if s.tlsFiles.serverName != "" {
		config.ServerName = s.tlsFiles.serverName
	}
	if s.tlsFiles.ca != "" {
		pem, err := os.ReadFile(s.tlsFiles.ca)
		if err != nil {
			return nil, invalidField("WithCA", "the CA file cannot be read: %v", err).causedBy(err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalidField("WithCA", "%s holds no certificate in PEM form", s.tlsFiles.ca)
		}
	}
	if s.tlsFiles.certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.tlsFiles.certificate, s.tlsFiles.key)
		if err != nil && strings.Contains(err.Error(), "does not match public key") {
			bad := invalidField("WithClientCertificate", "the key in %s is not that of the certificate in %s",
				s.tlsFiles.key, s.tlsFiles.certificate)
			return nil, bad.causedBy(err)
		}
		if err != nil {
			bad := invalidField("WithClientCertificate", "the client certificate cannot be used: %v", err)
			return nil, bad.causedBy(err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return config, nil
}

// useEnvironment takes the files that FILA_CA_FILE, FILA_CERT_FILE and FILA_KEY_FILE name, where the program says
// nothing. They say nothing of whether TLS is spoken.
func (s *settings) useEnvironment() {
	if s.tlsFiles.ca == "" && s.tls.RootCAs == nil {
		s.tlsFiles.ca = os.Getenv("FILA_CA_FILE")
	}
	if s.tlsFiles.certificate == "" && len(s.tls.Certificates) == 0 && s.tls.GetClientCertificate == nil {
		s.tlsFiles.certificate, s.tlsFiles.key = os.Getenv("FILA_CERT_FILE"), os.Getenv("FILA_KEY_FILE")
	}
}
