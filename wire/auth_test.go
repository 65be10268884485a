package wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// fake is a server of a few packets, for what MySQL 9.7 has no more, or what no honest server does.
type fake struct {
	net.Conn
	heard bytes.Buffer // everything that came in, TLS taken off
}

const fakeSalt = "12345678abcdefghijkl"

// greet begins a login.
func (f *fake) greet(capabilities uint32, plugin string) {
	b := append([]byte{10}, "5.7.44\x00"...)
	b = append(append(b, 1, 0, 0, 0), fakeSalt[:8]...)
	b = append(b, 0, byte(capabilities), byte(capabilities>>8), 33, 2, 0, byte(capabilities>>16), byte(capabilities>>24), 21)
	b = append(append(append(b, make([]byte, 10)...), fakeSalt[8:]...), 0)
	f.send(0, append(append(b, plugin...), 0)...)
}

func (f *fake) send(seq byte, b ...byte) {
	_, _ = f.Write(append([]byte{byte(len(b)), byte(len(b) >> 8), byte(len(b) >> 16), seq}, b...))
}

// hear reads one packet.
func (f *fake) hear() []byte {
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return nil
	}
	b := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, _ = io.ReadFull(f, b)
	f.heard.Write(b)
	return b
}

var ok = []byte{0, 0, 0, 2, 0, 0, 0}

// serveFake runs one connection of a fake, and gives the way to it. heard is what it heard, when the login is over.
func serveFake(t *testing.T, serve func(*fake)) (cfg Config, heard func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		f := &fake{Conn: c}
		serve(f)
		f.hear() // SET ROLE ALL, or the end
		f.send(1, ok...)
		f.Close()
		done <- f.heard.String()
	}()
	return Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "reader", Password: "S3cret", Timeout: 10 * time.Second}, func() string { return <-done }
}

const plain = capabilities | mysql.CLIENT_PLUGIN_AUTH

// mysql_native_password, which MySQL 9 has no more; from the manual, "Native Pluggable Authentication" (MySQL 8.4).
func TestNativePassword(t *testing.T) {
	for _, switched := range []bool{false, true} {
		cfg, heard := serveFake(t, func(f *fake) {
			f.greet(plain, map[bool]string{false: mysql.AUTH_NATIVE_PASSWORD, true: mysql.AUTH_CACHING_SHA2_PASSWORD}[switched])
			f.hear()
			if switched {
				f.send(2, append([]byte("\xfe"+mysql.AUTH_NATIVE_PASSWORD+"\x00"+fakeSalt), 0)...)
				f.hear()
				f.send(4, ok...)
				return
			}
			f.send(2, ok...)
		})
		c, err := Login(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		got := heard()
		if !strings.Contains(got, string(mysql.CalcNativePassword([]byte(fakeSalt), []byte("S3cret")))) || strings.Contains(got, "S3cret") {
			t.Errorf("switched %v: %q", switched, got)
		}
	}
}

// CLOUD-17: nothing makes us send the password in the clear over a connection that is not encrypted.
func TestNeverInTheClear(t *testing.T) {
	for name, serve := range map[string]func(*fake){
		"clear password by default": func(f *fake) { f.greet(plain, mysql.AUTH_CLEAR_PASSWORD); f.hear() },
		"clear password by a switch": func(f *fake) {
			f.greet(plain, mysql.AUTH_NATIVE_PASSWORD)
			f.hear()
			f.send(2, []byte("\xfe"+mysql.AUTH_CLEAR_PASSWORD+"\x00")...)
			f.hear()
		},
		"full authentication": func(f *fake) {
			f.greet(plain, mysql.AUTH_CACHING_SHA2_PASSWORD)
			f.hear()
			f.send(2, moreData, sha2Full)
			f.hear()
		},
		"sha256": func(f *fake) { f.greet(plain, mysql.AUTH_SHA256_PASSWORD); f.hear() },
		"a key that was not asked for": func(f *fake) {
			f.greet(plain, mysql.AUTH_CACHING_SHA2_PASSWORD)
			f.hear()
			f.send(2, append([]byte{moreData}, "-----BEGIN PUBLIC KEY-----"...)...)
			f.hear()
		},
		"a second factor": func(f *fake) { f.greet(plain, mysql.AUTH_NATIVE_PASSWORD); f.hear(); f.send(2, 2, 'x'); f.hear() },
		"a plugin of which we know nothing": func(f *fake) {
			f.greet(plain, "authentication_other")
			f.hear()
			f.send(2, []byte("\xfeauthentication_other\x00")...)
			f.hear()
		},
	} {
		cfg, heard := serveFake(t, serve)
		_, err := Login(t.Context(), cfg)
		if err == nil || strings.Contains(err.Error(), "S3cret") {
			t.Errorf("%s: %v", name, err)
		}
		if got := heard(); strings.Contains(got, "S3cret") {
			t.Errorf("%s: we said %q", name, got)
		}
	}
}

// mysql_clear_password over TLS is how the tokens of IAM get to RDS and Cloud SQL; from the manuals, "Connecting to your DB
// instance using IAM authentication" (RDS) and "Log in using IAM database authentication" (Cloud SQL).
func TestTokenOverTLS(t *testing.T) {
	ca := newAuthority(t)
	ca.issue(t, "server", &x509.Certificate{Subject: pkix.Name{CommonName: "db"}})
	pair, err := tls.LoadX509KeyPair(ca.path("server.pem"), ca.path("server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Repeat("t0ken/", 300)
	serve := func(f *fake) {
		f.greet(plain|mysql.CLIENT_SSL, mysql.AUTH_NATIVE_PASSWORD)
		f.hear()
		f.Conn = tls.Server(f.Conn, &tls.Config{Certificates: []tls.Certificate{pair}})
		f.hear()
		f.send(3, []byte("\xfe"+mysql.AUTH_CLEAR_PASSWORD+"\x00")...)
		f.hear()
		f.send(5, ok...)
	}
	cfg, heard := serveFake(t, serve)
	cfg.PasswordCommand, cfg.TLS.Mode = []string{script(t, "echo "+token)}, TLSRequired
	c, err := Login(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if !strings.Contains(heard(), token+"\x00") {
		t.Error("the token did not come")
	}
	// The server's identity is proved before anything is said.
	cfg, heard = serveFake(t, serve)
	cfg.Password, cfg.TLS.Mode = token, TLSVerifyCA
	_, err = Login(t.Context(), cfg)
	wantSetup(t, err, "unknown authority")
	if strings.Contains(heard(), token) {
		t.Error("said to somebody unknown")
	}
}

// What stands behind the greeting in the clear must not be taken for what comes through TLS.
func TestNothingInFrontOfTLS(t *testing.T) {
	cfg, _ := serveFake(t, func(f *fake) {
		network, both := f.Conn, &recorder{written: &bytes.Buffer{}}
		f.Conn = both
		f.greet(plain|mysql.CLIENT_SSL, mysql.AUTH_NATIVE_PASSWORD)
		f.send(1, ok...)
		f.Conn = network
		_, _ = f.Write(both.written.Bytes()) // in one piece
		f.hear()
	})
	if _, err := Login(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "in front of the TLS handshake") {
		t.Error(err)
	}
}

// recorder keeps what is written.
type recorder struct {
	net.Conn
	written *bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) { return r.written.Write(b) }

// FuzzLogin: whatever a server says, we neither crash nor say the password to it without encryption.
func FuzzLogin(f *testing.F) {
	hello := &fake{Conn: &recorder{written: &bytes.Buffer{}}}
	hello.greet(plain, mysql.AUTH_CACHING_SHA2_PASSWORD)
	greeting := hello.Conn.(*recorder).written.Bytes()
	f.Add(greeting)
	f.Add(append(greeting[:len(greeting):len(greeting)], 2, 0, 0, 2, moreData, sha2Full))
	f.Add(append(greeting[:len(greeting):len(greeting)], []byte("\x16\x00\x00\x02\xfemysql_clear_password\x00")...))
	f.Add(append(greeting[:len(greeting):len(greeting)], []byte("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x01\x02\x00\x00")...))
	f.Add([]byte("\x17\x00\x00\x00\xff\x10\x04Too many connections"))
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		heard := make(chan []byte)
		go func() {
			go func() { _, _ = theirs.Write(said); theirs.Close() }()
			b, _ := io.ReadAll(theirs)
			heard <- b
		}()
		raw := &patient{ours, time.Second, time.Second}
		cfg := Config{User: "reader", Host: "h", TLS: TLS{AskServerKey: true}}.withDefaults()
		g := greeter{cfg: cfg, password: "S3cret-of-the-fuzz", raw: raw, packets: newPackets(raw)}
		if err := g.run(); err == nil {
			_, _ = g.packets.query("SELECT 1")
		}
		ours.Close()
		if b := <-heard; bytes.Contains(b, []byte("S3cret-of-the-fuzz")) {
			t.Error("said in the clear")
		}
	})
}
