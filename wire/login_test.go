package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// session opens a session and closes it again.
func session(t *testing.T, cfg Config) (encrypted bool, err error) {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		return false, err
	}
	defer c.Close()
	r, err := c.Query(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'")
	if err != nil {
		t.Fatal(err)
	}
	if c.Encrypted() != (r.Text(0, 1) != "") {
		t.Errorf("we say encrypted %v, the server says %q", c.Encrypted(), r.Text(0, 1))
	}
	return c.Encrypted(), nil
}

// wantSetup demands an error of the configuration, with words of its advice, that does not show the password.
func wantSetup(t *testing.T, err error, words ...string) {
	t.Helper()
	var e *ConnectError
	if !errors.As(err, &e) || !e.Setup || e.Denied {
		t.Fatalf("%#v: %v", e, err)
	}
	wantWords(t, err, words...)
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if strings.Contains(err.Error(), "S3cret") {
		t.Errorf("the password is in: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.pem and name-key.pem.
func (a *authority) issue(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.path(name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, a.path(name+"-key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// CLOUD-16: each mode against a server whose certificate an authority of ours has signed.
func TestTLSModes(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	ca.issue(t, "server", &x509.Certificate{Subject: pkix.Name{CommonName: "db"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	ca.issue(t, "client", &x509.Certificate{Subject: pkix.Name{CommonName: "reader"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--ssl-ca=" + ca.path("ca.pem"), "--ssl-cert=" + ca.path("server.pem"), "--ssl-key=" + ca.path("server-key.pem")}})
	if s.Kind() == mysqltest.Testcontainers {
		t.Skip("the server does not see our files")
	}
	s.Exec(t, "", "CREATE USER shows@'%' IDENTIFIED BY 'S3cret' REQUIRE X509")
	with := func(tls TLS) Config {
		cfg := config(s.Login)
		cfg.TLS = tls
		return cfg
	}
	for _, mode := range []TLSMode{TLSPreferred, TLSDisabled, TLSRequired} {
		if encrypted, err := session(t, with(TLS{Mode: mode, CA: other.path("ca.pem")})); err != nil || encrypted != (mode != TLSDisabled) {
			t.Errorf("%s: %v, %v", mode, encrypted, err)
		}
	}
	for _, mode := range []TLSMode{TLSVerifyCA, TLSVerifyIdentity} {
		if encrypted, err := session(t, with(TLS{Mode: mode, CA: ca.path("ca.pem")})); err != nil || !encrypted {
			t.Errorf("%s: %v", mode, err)
		}
		_, err := session(t, with(TLS{Mode: mode, CA: other.path("ca.pem")}))
		wantSetup(t, err, "unknown authority", "ssl_ca")
		_, err = session(t, with(TLS{Mode: mode})) // the system's authorities
		wantSetup(t, err, "unknown authority", "ssl_ca")
	}
	named := with(TLS{Mode: TLSVerifyIdentity, CA: ca.path("ca.pem")})
	named.Host = "localhost"
	_, err := session(t, named)
	wantSetup(t, err, "localhost", "verify-ca")
	named.TLS.Mode = TLSVerifyCA
	if _, err := session(t, named); err != nil {
		t.Error(err)
	}
	_, err = session(t, with(TLS{Mode: TLSVerifyCA, CA: ca.path("none.pem")}))
	wantSetup(t, err, "none.pem", "ssl_ca")
	_, err = session(t, with(TLS{Mode: TLSVerifyCA, CA: ca.path("server-key.pem")}))
	wantSetup(t, err, "has none in PEM form")

	shows := with(TLS{Mode: TLSRequired})
	shows.User, shows.Password = "shows", "S3cret"
	var refused *ConnectError
	if _, err = session(t, shows); !errors.As(err, &refused) || !refused.Denied {
		t.Error(err)
	}
	wantWords(t, err, "X509")
	shows.TLS.Cert, shows.TLS.Key = ca.path("client.pem"), ca.path("client-key.pem")
	if _, err := session(t, shows); err != nil {
		t.Error(err)
	}
	shows.TLS.Key = ""
	_, err = session(t, shows)
	wantSetup(t, err, "go together")
}

// A common name counts only where a certificate has no other names, as for MySQL's clients.
func TestCommonName(t *testing.T) {
	ca := newAuthority(t)
	common, _ := ca.issue(t, "a", &x509.Certificate{Subject: pkix.Name{CommonName: "db.example"}})
	both, _ := ca.issue(t, "b", &x509.Certificate{Subject: pkix.Name{CommonName: "db.example"}, DNSNames: []string{"*.other.example"}})
	if err := identity(common, "DB.example"); err != nil {
		t.Error(err)
	}
	if err := identity(common, "db2.example"); err == nil {
		t.Error("another name")
	}
	if err := identity(both, "db.example"); err == nil {
		t.Error("the common name beside others")
	}
	if err := identity(both, "x.other.example"); err != nil {
		t.Error(err)
	}
}

// CLOUD-16: a server without encryption; a connection is never made worse in silence.
func TestNoTLS(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--tls-version="}})
	cfg := config(s.Login)
	if encrypted, err := session(t, cfg); err != nil || encrypted {
		t.Error(encrypted, err)
	}
	cfg.TLS.StayEncrypted = true
	_, err := session(t, cfg)
	wantSetup(t, err, "earlier connections to it were encrypted", "ssl_mode = 'disabled'")
	for _, mode := range []TLSMode{TLSRequired, TLSVerifyCA, TLSVerifyIdentity} {
		cfg.TLS = TLS{Mode: mode}
		_, err := session(t, cfg)
		wantSetup(t, err, "offers no encryption", mode.String())
	}
}

// CLOUD-16: encryption becomes a demand while we are connected without.
func TestEncryptionDemanded(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	cfg := config(s.Login)
	cfg.TLS.Mode = TLSDisabled
	c := dial(t, cfg)
	s.Exec(t, "", "SET GLOBAL require_secure_transport = ON")
	if _, err := c.Query(t.Context(), "SELECT 1"); err != nil {
		t.Error("a session that was there already", err)
	}
	_, err := session(t, cfg)
	wantSetup(t, err, "3159", "ssl_mode = 'required'")
	cfg.TLS.Mode = TLSPreferred
	if encrypted, err := session(t, cfg); err != nil || !encrypted {
		t.Error(encrypted, err)
	}
}

// CLOUD-17: caching_sha2_password with a cold cache goes over TLS, a socket, or with the server's key; never in the clear.
func TestColdCache(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE USER tm@'%' IDENTIFIED WITH caching_sha2_password BY 'S3cret of more than twenty letters'", "CREATE USER nopass@'%' IDENTIFIED WITH caching_sha2_password BY ''")
	cold := func(change func(*Config)) error {
		s.Exec(t, "", "FLUSH PRIVILEGES")
		cfg := config(s.Login)
		cfg.User, cfg.Password = "tm", "S3cret of more than twenty letters"
		change(&cfg)
		_, err := session(t, cfg)
		return err
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	must("TLS", cold(func(*Config) {}))
	must("the key that the server sends", cold(func(c *Config) { c.TLS = TLS{Mode: TLSDisabled, AskServerKey: true} }))
	wantSetup(t, cold(func(c *Config) { c.TLS.Mode = TLSDisabled }), "get_server_public_key", "ssl_mode = 'required'")
	must("no password", cold(func(c *Config) { c.User, c.Password, c.TLS.Mode = "nopass", "", TLSDisabled }))
	var refused *ConnectError
	if err := cold(func(c *Config) { c.Password, c.TLS = "S3cret, wrong", TLS{Mode: TLSDisabled, AskServerKey: true} }); !errors.As(err, &refused) || !refused.Denied {
		t.Error(err)
	} else {
		wantWords(t, err, "1045")
	}
	var socket string
	if err := s.DB(t, "").QueryRow("SELECT @@socket").Scan(&socket); err != nil {
		t.Fatal(err)
	}
	if dir := s.DataDir(); dir != "" {
		key := filepath.Join(dir, "public_key.pem")
		must("a key that we have", cold(func(c *Config) { c.TLS = TLS{Mode: TLSDisabled, ServerKey: key} }))
		wantSetup(t, cold(func(c *Config) { c.TLS = TLS{Mode: TLSDisabled, ServerKey: filepath.Join(dir, "ca.pem")} }), "public key")
		must("a socket", cold(func(c *Config) { c.Socket, c.Host, c.Port = shortPath(t, filepath.Join(dir, socket)), "", 0 }))
	}
	// Warm, it goes without all that.
	must("TLS", cold(func(*Config) {}))
	cfg := config(s.Login)
	cfg.User, cfg.Password, cfg.TLS.Mode = "tm", "S3cret of more than twenty letters", TLSDisabled
	if encrypted, err := session(t, cfg); err != nil || encrypted {
		t.Error(encrypted, err)
	}
}

// shortPath gives a path that fits into a socket's address.
func shortPath(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	link := filepath.Join(dir, "s")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// A silent host ends the attempt after its time, a host that is no MySQL at once.
func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "u", Timeout: 200 * time.Millisecond}
	var lost *ConnectError
	if _, err := Login(t.Context(), cfg); !errors.As(err, &lost) || lost.Setup || lost.Denied || lost.Full {
		t.Error(err)
	} else {
		wantWords(t, err, "did not answer within 200ms")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	cfg.Timeout = time.Hour
	if _, err := Login(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, greeting := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "\x05\x00\x00\x00\x0b\x08\x05\x1a\x00", "\x01\x00\x00\x00\x0a", "SSH-2.0-OpenSSH_9.2\r\n"} {
		go func() {
			c, err := l.Accept()
			for err == nil { // connections of above
				_, _ = c.Write([]byte(greeting))
				c.Close()
				c, err = l.Accept()
			}
		}()
		if _, err := Login(t.Context(), cfg); err == nil {
			t.Error(greeting)
		}
	}
}
