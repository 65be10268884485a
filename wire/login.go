package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Login connects and logs in. The session is as the server makes it; [Dial] prepares one for reading. Errors are
// *ConnectError.
func Login(ctx context.Context, cfg Config) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, connectError(ctx, cfg, &setupError{err, "check the settings of the connection"})
	}
	cfg = cfg.withDefaults()
	password, err := cfg.secret(ctx)
	if err != nil {
		return nil, connectError(ctx, cfg, err)
	}
	c, err := login(ctx, cfg, password)
	if err != nil {
		return nil, connectError(ctx, cfg, err)
	}
	// Roles that are granted and not active by default count, too. Servers without roles do not know the statement.
	if err := c.Exec(ctx, "SET ROLE ALL"); err != nil && ServerError(err) == nil {
		_ = c.Close() // the first error says more
		return nil, connectError(ctx, cfg, err)
	}
	return c, nil
}

// login has cfg.Timeout for everything that the network does.
func login(ctx context.Context, cfg Config, password string) (*Conn, error) {
	timed, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	network, err := cfg.Dial(timed, cfg.network(), cfg.Addr())
	if err != nil {
		return nil, late(ctx, timed, cfg, err)
	}
	raw := &patient{network, cfg.ReadTimeout, cfg.WriteTimeout}
	stop := context.AfterFunc(timed, func() { _ = raw.Close() })
	l := greeter{cfg: cfg, password: password, raw: raw, packets: newPackets(raw)}
	err = l.run()
	if !stop() && err == nil {
		err = net.ErrClosed
	}
	if err != nil {
		_ = raw.Close() // the login's error says more
		return nil, late(ctx, timed, cfg, err)
	}
	return &Conn{raw: raw, packets: l.packets, encrypted: l.encrypted, id: l.hello.id, addr: cfg.Addr()}, nil
}

// late says so where an error comes from our own clock.
func late(ctx, timed context.Context, cfg Config, err error) error {
	if timed.Err() != nil && ctx.Err() == nil && ServerError(err) == nil {
		return fmt.Errorf("it did not answer within %s (connect_timeout)", cfg.Timeout)
	}
	return err
}

// greeter is a login under way.
type greeter struct {
	cfg       Config
	password  string
	raw       net.Conn
	packets   *packets
	encrypted bool
	hello     greeting
}

// greeting is the server's first packet.
type greeting struct {
	version      string
	id           uint32
	capabilities uint32
	plugin       string
	salt         []byte
}

const (
	saltLength     = 20
	saltFirst      = 8
	reservedLength = 10
)

// parseGreeting reads u8 protocol version, version\0, u32 id, 8 bytes of salt, \0, u16 capabilities, u8 character set, u16
// status, u16 more capabilities, u8 length of the salt, ten zeros, the rest of the salt, plugin\0.
func parseGreeting(b []byte) (greeting, error) {
	f := packetReader{rest: b}
	if protocol := f.number(1); protocol != uint64(mysql.ClassicProtocolVersion) {
		return greeting{}, &setupError{fmt.Errorf("it does not speak MySQL's protocol (its first byte is %#x)", protocol), "check the port; MySQL's X protocol, on 33060, is another one"}
	}
	g := greeting{version: f.terminated(), id: uint32(f.number(4)), salt: append([]byte(nil), f.take(saltFirst)...)}
	f.take(1)
	g.capabilities = uint32(f.number(2))
	f.take(3) // character set, status
	g.capabilities |= uint32(f.number(2)) << 16
	length := f.number(1)
	f.take(reservedLength)
	if f.bad || g.capabilities&mysql.CLIENT_PROTOCOL_41 == 0 || g.capabilities&mysql.CLIENT_SECURE_CONNECTION == 0 {
		return g, &setupError{errors.New("it greets as servers before MySQL 4.1 do, or is no MySQL"), "check the host and the port"}
	}
	rest := f.take(max(length, saltFirst+13) - saltFirst)
	g.salt = trimSalt(append(g.salt, rest...))
	g.plugin = f.terminated()
	if f.bad || len(g.salt) < saltLength {
		return g, mysql.ErrMalformPacket
	}
	return g, nil
}

// trimSalt leaves out the zero that servers put behind the salt.
func trimSalt(b []byte) []byte {
	if len(b) == saltLength+1 && b[saltLength] == 0 {
		return b[:saltLength]
	}
	return b
}

// old tells a server of the 5 series.
func (g *greeting) old() bool { return strings.HasPrefix(g.version, "5.") }

func (g *greeter) run() error {
	b, err := g.packets.read()
	if err != nil {
		return err
	}
	if g.hello, err = parseGreeting(b); err != nil {
		return err
	}
	encrypt, err := g.cfg.TLS.wanted(g.hello.capabilities&mysql.CLIENT_SSL != 0, g.cfg.Socket != "")
	if err != nil {
		return err
	}
	if encrypt {
		if err := g.encrypt(); err != nil {
			return err
		}
	}
	return g.authenticate()
}

// encrypt asks for TLS and does the handshake.
func (g *greeter) encrypt() error {
	config, err := g.cfg.tlsConfig()
	if err != nil {
		return err
	}
	if err := g.packets.write(g.head(mysql.CLIENT_SSL)); err != nil {
		return err
	}
	if g.packets.br.Buffered() > 0 { // sent before anything was encrypted, and to be taken for what comes after
		return errors.New("the server sent something in the clear in front of the TLS handshake")
	}
	secure := tls.Client(g.raw, config)
	if err := secure.Handshake(); err != nil {
		return handshakeError(err)
	}
	seq := g.packets.seq
	g.packets = newPackets(secure)
	g.packets.seq, g.encrypted = seq, true
	return nil
}

// handshakeError tells what people have to look at from a connection that broke.
func handshakeError(err error) error {
	var own *setupError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	if !errors.As(err, &own) && (errors.As(err, &alert) || errors.As(err, &record)) {
		return &setupError{fmt.Errorf("the TLS handshake: %w", err), "the server must speak TLS 1.2 or 1.3 (tls_version); where it asks for a client certificate, give ssl_cert and ssl_key"}
	}
	return err
}

// capabilities of ours. Without CLIENT_DEPRECATE_EOF a row can't be taken for the end packet; without
// CLIENT_QUERY_ATTRIBUTES an execute packet has no optional parts.
const capabilities = mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG |
	mysql.CLIENT_TRANSACTIONS | mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA | mysql.CLIENT_CONNECT_ATTRS

// Collations whose character set is utf8mb4; older servers know the first one only.
const (
	collationGeneral = 45  // utf8mb4_general_ci
	collation0900    = 255 // utf8mb4_0900_ai_ci
)

// head is the part of our answer that also asks for TLS: u32 capabilities, u32 largest packet, u8 collation, 23 zeros.
func (g *greeter) head(more uint32) []byte {
	const size, collationAt = 32, 8
	flags := g.flags() | more
	b := make([]byte, size)
	b[0], b[1], b[2], b[3] = byte(flags), byte(flags>>8), byte(flags>>16), byte(flags>>24)
	if b[collationAt] = collation0900; g.hello.old() {
		b[collationAt] = collationGeneral
	}
	return b
}

func (g *greeter) flags() uint32 {
	flags := capabilities & g.hello.capabilities
	if g.encrypted {
		flags |= mysql.CLIENT_SSL
	}
	return flags
}

// answer is our side of the login, with the first word of a plugin's exchange.
func (g *greeter) answer(plugin string, word []byte) []byte {
	b := append(g.head(0), g.cfg.User...)
	b = append(b, 0)
	if g.flags()&mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA != 0 {
		b = append(b, mysql.PutLengthEncodedString(word)...)
	} else {
		b = append(append(b, byte(len(word))), word...)
	}
	b = append(append(b, plugin...), 0)
	if g.flags()&mysql.CLIENT_CONNECT_ATTRS == 0 {
		return b
	}
	return append(b, mysql.PutLengthEncodedString(attributes())...)
}

// attributes are what the source shows of us in performance_schema.session_connect_attrs.
func attributes() []byte {
	var b []byte
	for _, text := range []string{"program_name", "tidemark", "_client_name", "tidemark", "_os", runtime.GOOS, "_platform", runtime.GOARCH, "_pid", strconv.Itoa(os.Getpid())} {
		b = append(b, mysql.PutLengthEncodedString([]byte(text))...)
	}
	return b
}
