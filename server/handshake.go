package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
)

// Capabilities of client and server, by the protocol's numbers.
const (
	capLongPassword = 1 << iota
	capFoundRows
	capLongFlag
	capConnectWithDB
	capNoSchema
	capCompress
	capODBC
	capLocalFiles
	capIgnoreSpace
	capProtocol41
	capInteractive
	capTLS
	capIgnoreSigpipe
	capTransactions
	capReserved
	capSecureConnection
	capMultiStatements
	capMultiResults
	capPreparedMultiResults
	capPluginAuth
	capConnectAttrs
	capPluginAuthLenencData
	capExpiredPasswords
	capSessionTrack
	capDeprecateEOF
)

const serverCapabilities = capLongPassword | capFoundRows | capLongFlag | capConnectWithDB | capODBC | capIgnoreSpace |
	capProtocol41 | capInteractive | capIgnoreSigpipe | capTransactions | capReserved | capSecureConnection |
	capMultiStatements | capMultiResults | capPreparedMultiResults | capPluginAuth | capConnectAttrs |
	capPluginAuthLenencData | capExpiredPasswords | capDeprecateEOF

// handshakeTimeout bounds the time from connect to login, as MySQL's connect_timeout does.
const handshakeTimeout = 10 * time.Second

// login is what a client said about itself.
type login struct {
	capabilities uint32
	charset      uint8
	user         string
	answer       []byte
	database     string
	plugin       string
	attributes   map[string]string
}

// handshake greets the client, turns on TLS where it asks for it, and checks who it is. The error has been sent.
func (c *conn) handshake(ctx context.Context) error {
	_ = c.net.SetDeadline(time.Now().Add(handshakeTimeout))
	c.nonce = newNonce()
	if err := c.greet(); err != nil {
		return err
	}
	l, err := c.readLogin(ctx)
	if err != nil {
		return c.refuse(err)
	}
	if err := c.authenticate(l); err != nil {
		return c.refuse(err)
	}
	if err := c.session.login(l); err != nil {
		return c.refuse(err)
	}
	if err := c.writeOK(okResult{}); err != nil {
		return err
	}
	_ = c.net.SetDeadline(time.Time{})
	return c.out.flush()
}

// refuse sends the error and gives it back.
func (c *conn) refuse(err error) error {
	_ = c.writeError(err)
	_ = c.out.flush()
	return err
}

func (c *conn) greet() error {
	capabilities := uint32(serverCapabilities)
	if c.server.tls != nil {
		capabilities |= capTLS
	}
	b := []byte{10}
	b = append(append(b, c.server.config.Version...), 0)
	b = appendUint32(b, c.id)
	b = append(append(b, c.nonce[:8]...), 0)
	b = appendUint16(b, uint16(capabilities))
	b = append(b, byte(field.UTF8MB4))
	b = appendUint16(b, statusAutocommit)
	b = appendUint16(b, uint16(capabilities>>16))
	b = append(b, nonceLength+1)
	b = append(b, make([]byte, 10)...)
	b = append(append(b, c.nonce[8:]...), 0)
	b = append(append(b, cachingSHA2...), 0)
	if err := c.out.write(b); err != nil {
		return err
	}
	return c.out.flush()
}

// tlsRequestLength is the length of a login cut off after its fixed part: the client wants TLS first.
const tlsRequestLength = 32

func (c *conn) readLogin(ctx context.Context) (login, error) {
	p, err := c.in.read()
	if err != nil {
		return login{}, err
	}
	c.out.seq = p.next
	if len(p.payload) == tlsRequestLength && c.server.tls != nil {
		if err := c.startTLS(ctx); err != nil {
			return login{}, err
		}
		if p, err = c.in.read(); err != nil {
			return login{}, err
		}
		c.out.seq = p.next
	}
	l, err := parseLogin(p.payload)
	c.capabilities = l.capabilities & (serverCapabilities | capTLS)
	return l, err
}

func (c *conn) startTLS(ctx context.Context) error {
	t := tls.Server(bufferedConn{c.net, c.in}, c.server.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	seq := c.out.seq
	c.net = t
	c.in, c.out = newPacketReader(t), newPacketWriter(t)
	c.out.seq = seq
	return nil
}

// bufferedConn reads what the packet reader has taken off the network already before it reads on.
type bufferedConn struct {
	net.Conn
	in *packetReader
}

func (b bufferedConn) Read(p []byte) (int, error) { return b.in.r.Read(p) }

func errHandshake() error { return sqlerr.New(sqlerr.HandshakeError, "Bad handshake") }

func parseLogin(payload []byte) (login, error) {
	d := decoder{b: payload}
	l := login{capabilities: uint32(d.uint(4))}
	d.uint(4) // the longest packet that the client takes
	l.charset = uint8(d.uint(1))
	d.bytes(23)
	if l.capabilities&capProtocol41 == 0 || l.capabilities&capSecureConnection == 0 {
		return l, sqlerr.New(1251, "Client does not support authentication protocol requested by server; consider upgrading MySQL client")
	}
	if l.capabilities&capCompress != 0 { // though it was not offered: such a client would compress all that follows
		return l, sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support compression of the connection; turn it off in the client")
	}
	l.user = d.zeroString()
	if l.capabilities&capPluginAuthLenencData != 0 {
		l.answer = d.lenBytes()
	} else {
		l.answer = d.bytes(d.uint(1))
	}
	parseLoginTail(&d, &l)
	if d.bad {
		return l, errHandshake()
	}
	return l, nil
}

func parseLoginTail(d *decoder, l *login) {
	if l.capabilities&capConnectWithDB != 0 && len(d.b) > 0 {
		l.database = d.zeroString()
	}
	l.plugin = nativePassword
	if l.capabilities&capPluginAuth != 0 && len(d.b) > 0 {
		l.plugin = d.zeroString()
	}
	if l.capabilities&capConnectAttrs != 0 && len(d.b) > 0 {
		l.attributes = parseAttributes(d.lenBytes())
	}
}

// parseAttributes reads what a client says of itself; a damaged list ends where the damage begins.
func parseAttributes(b []byte) map[string]string {
	d := decoder{b: b}
	out := map[string]string{}
	for len(d.b) > 0 {
		name := d.lenBytes()
		value := d.lenBytes()
		if d.bad {
			break
		}
		out[string(name)] = string(value)
	}
	return out
}

// authenticate checks user and password. A plug-in that is not spoken is answered by asking for one that is.
func (c *conn) authenticate(l login) error {
	plugin, answer := l.plugin, l.answer
	if plugin != cachingSHA2 && plugin != nativePassword {
		var err error
		if answer, err = c.switchPlugin(); err != nil {
			return err
		}
		plugin = cachingSHA2
	}
	password, known := c.server.config.Users[l.user]
	if !known || !provesPassword(plugin, password, c.nonce, answer) {
		return errAccessDenied(l.user, c.host(), len(answer) > 1)
	}
	if password == "" && !isLoopback(c.remote) {
		return sqlerr.New(sqlerr.AccessDenied, "Access denied for user '%s'@'%s': an empty password is accepted from this machine only", l.user, c.host())
	}
	if plugin == cachingSHA2 && password != "" {
		// "fast authentication succeeded": the password is known here, so the slow path is never needed
		return c.out.write([]byte{1, 3})
	}
	return nil
}

func (c *conn) switchPlugin() ([]byte, error) {
	b := append([]byte{0xfe}, cachingSHA2...)
	b = append(b, 0)
	b = append(append(b, c.nonce...), 0)
	if err := c.out.write(b); err != nil {
		return nil, err
	}
	if err := c.out.flush(); err != nil {
		return nil, err
	}
	p, err := c.next()
	c.out.seq = p.next
	return p.payload, err
}

func errAccessDenied(user, host string, password bool) error {
	using := "NO"
	if password {
		using = "YES"
	}
	return sqlerr.New(sqlerr.AccessDenied, "Access denied for user '%s'@'%s' (using password: %s)", user, host, using)
}
