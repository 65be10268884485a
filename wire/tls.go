package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// TLSMode says how a connection is secured. The modes are those of MySQL's own clients (MySQL 8.4 manual, "Command
// Options for Encrypted Connections").
type TLSMode uint8

// The modes.
const (
	// TLSPreferred encrypts where the server offers it, and looks at no certificate. A handshake that fails is an error, not a
	// reason to go on in the clear. A Unix socket is not encrypted. See [TLS.StayEncrypted].
	TLSPreferred TLSMode = iota
	// TLSDisabled never encrypts.
	TLSDisabled
	// TLSRequired always encrypts, and looks at no certificate.
	TLSRequired
	// TLSVerifyCA demands a certificate that one of the authorities has signed.
	TLSVerifyCA
	// TLSVerifyIdentity demands besides that the certificate is one for the host's name.
	TLSVerifyIdentity
)

var tlsModes = [...]string{TLSPreferred: "preferred", TLSDisabled: "disabled", TLSRequired: "required", TLSVerifyCA: "verify-ca", TLSVerifyIdentity: "verify-identity"}

// String is the mode as ParseTLSMode takes it.
func (m TLSMode) String() string { return tlsModes[m] }

// ParseTLSMode reads a mode, in any letter case, with - or _.
func ParseTLSMode(text string) (TLSMode, error) {
	for m, name := range tlsModes {
		if strings.EqualFold(strings.ReplaceAll(text, "_", "-"), name) {
			return TLSMode(m), nil
		}
	}
	return 0, fmt.Errorf("%q is none of disabled, preferred, required, verify-ca, verify-identity", text)
}

// TLS is how a connection is secured. Files are PEM and read at each connect, so that renewed ones count at once.
type TLS struct {
	Mode TLSMode
	// CA has the authorities that may sign the server's certificate; empty: the system's.
	CA string
	// Cert and Key are what we show when the server asks; both or none.
	Cert, Key string
	// StayEncrypted refuses a connection in the clear under TLSPreferred: an earlier one to the same source was encrypted,
	// and whoever can take the offer out of a greeting could read everything from then on.
	StayEncrypted bool
	// ServerKey is the server's public RSA key, for passwords over connections that are not encrypted; empty: none.
	ServerKey string
	// AskServerKey takes the key that the server sends. It protects from those who listen, not from those who stand between.
	AskServerKey bool
}

func (t TLS) validate() error {
	if (t.Cert == "") != (t.Key == "") {
		return errors.New("a client certificate and its key go together")
	}
	return nil
}

// wanted tells whether a connection is to be encrypted. It is an error where it has to be and cannot.
func (t TLS) wanted(offered, socket bool) (bool, error) {
	switch {
	case t.Mode == TLSDisabled, t.Mode == TLSPreferred && socket:
		return false, nil
	case offered:
		return true, nil
	case t.Mode == TLSPreferred && !t.StayEncrypted:
		return false, nil
	case t.Mode == TLSPreferred:
		return false, &setupError{errors.New("the server offers no encryption any more, and earlier connections to it were encrypted"),
			"find out who took it away; ssl_mode = 'disabled' goes on without"}
	}
	return false, &setupError{fmt.Errorf("the server offers no encryption, and ssl_mode is %s", t.Mode), "let the server have a certificate (ssl_cert, ssl_key), or allow a plain connection by another ssl_mode"}
}

// tlsConfig gives what crypto/tls wants.
func (c Config) tlsConfig() (*tls.Config, error) {
	// What is verified is done by verify, since crypto/tls has no mode that looks at the signature only.
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.Host, InsecureSkipVerify: true} //nolint:gosec // see above
	if c.TLS.Cert != "" {
		pair, err := c.keyPair()
		if err != nil {
			return nil, err
		}
		out.Certificates = []tls.Certificate{pair}
	}
	if c.TLS.Mode < TLSVerifyCA {
		return out, nil
	}
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	out.VerifyConnection = func(s tls.ConnectionState) error { return c.TLS.verify(s.PeerCertificates, roots, c.Host) }
	return out, nil
}

func (c Config) keyPair() (tls.Certificate, error) {
	cert, err := c.read(c.TLS.Cert, "the client's certificate", "ssl_cert")
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := c.read(c.TLS.Key, "the client's key", "ssl_key")
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, &setupError{fmt.Errorf("the client's certificate: %w", err), "check ssl_cert and ssl_key"}
	}
	return pair, nil
}

func (c Config) roots() (*x509.CertPool, error) {
	if c.TLS.CA == "" {
		return x509.SystemCertPool()
	}
	pem, err := c.read(c.TLS.CA, "the authorities' certificates", "ssl_ca")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &setupError{fmt.Errorf("the authorities' certificates: %s has none in PEM form", c.TLS.CA), "check ssl_ca"}
	}
	return pool, nil
}

func (t TLS) verify(chain []*x509.Certificate, roots *x509.CertPool, host string) error {
	if len(chain) == 0 {
		return &setupError{errors.New("the server shows no certificate"), "check its ssl_cert"}
	}
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(opts); err != nil {
		return &setupError{err, "give the file of the authority that signed it as ssl_ca (RDS and Aurora: global-bundle.pem; Cloud SQL: server-ca.pem; " +
			"a server that made its own: ca.pem of its data directory), or encrypt without a look at it by ssl_mode = 'required'"}
	}
	if t.Mode != TLSVerifyIdentity {
		return nil
	}
	if err := identity(chain[0], host); err != nil {
		return &setupError{err, "connect by a name that is in it, or look at the authority only by ssl_mode = 'verify-ca'"}
	}
	return nil
}

// identity checks the certificate's name. One without alternative names is known by its common name, as for MySQL's own
// clients.
func identity(c *x509.Certificate, host string) error {
	if len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses)+len(c.URIs) == 0 && c.Subject.CommonName != "" {
		if strings.EqualFold(c.Subject.CommonName, host) {
			return nil
		}
		return fmt.Errorf("the certificate is for %q, not for %q", c.Subject.CommonName, host)
	}
	return c.VerifyHostname(host)
}
