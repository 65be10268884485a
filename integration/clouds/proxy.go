package clouds

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// Proxy stands in front of a server and changes some of its answers. Everything else, the binlog too, goes through it as
// it is. It offers no compression and ends TLS on both sides, with a certificate that nobody vouches for, so that it can read
// what goes through.
type Proxy struct {
	mysqltest.Login // the account at the proxy's address

	version  string
	rules    []Rule
	target   string
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
	wg       sync.WaitGroup
}

// NewProxy starts a proxy in front of a server; it ends with the test. version is what the server's greeting says, "" for
// the server's own.
func NewProxy(tb testing.TB, server mysqltest.Login, version string, rules ...Rule) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Login: server, version: version, rules: rules, target: server.Addr(), listener: l, open: map[net.Conn]bool{}}
	p.Host, p.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) keep(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[c] = true
		return
	}
	delete(p.open, c)
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.keep(client, true)
	defer p.keep(client, false)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.keep(server, true)
	defer p.keep(server, false)
	plain := client
	if client, server, err = p.handshake(client, server); err != nil {
		return
	}
	c := &conversation{proxy: p, toClient: bufio.NewWriter(client), toServer: bufio.NewWriter(server)}
	var both sync.WaitGroup
	both.Go(func() {
		_ = c.fromClient(bufio.NewReader(client)) // either side's end is the other's
		_ = server.Close()
	})
	_ = c.fromServer(bufio.NewReaderSize(server, 64<<10))
	_ = plain.Close()
	both.Wait()
}

// handshake passes the server's greeting and the client's answer on, and encrypts both ways where the client wants that.
func (p *Proxy) handshake(client, server net.Conn) (toClient, toServer net.Conn, err error) {
	hello, err := readPacket(server)
	if err != nil {
		return nil, nil, err
	}
	if hello, err = greeting(hello, p.version); err != nil {
		return nil, nil, err
	}
	if err := hello.write(client); err != nil {
		return nil, nil, err
	}
	answer, err := readPacket(client)
	if err != nil {
		return nil, nil, err
	}
	if err := answer.write(server); err != nil || !answer.wantsTLS() {
		return client, server, err
	}
	inner := tls.Server(client, &tls.Config{Certificates: []tls.Certificate{certificate()}, MinVersion: tls.VersionTLS12})
	outer := tls.Client(server, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // a test server's own certificate
	return inner, outer, errors.Join(inner.Handshake(), outer.Handshake())
}

// conversation is one connection. Client and server speak in turns: when a command comes, the answer to the one before has
// been passed on.
type conversation struct {
	proxy *Proxy

	mu       sync.Mutex
	ready    bool       // logged in
	collect  *collector // takes the answer that is awaited
	toClient *bufio.Writer
	toServer *bufio.Writer
}

const (
	comQuery    = 0x03
	comDump     = 0x12
	comPrepare  = 0x16
	comDumpGTID = 0x1e
)

func (c *conversation) fromClient(r *bufio.Reader) error {
	for {
		p, err := readPacket(r)
		if err != nil {
			return err
		}
		if p, err = c.command(p); err != nil {
			return err
		}
		if p.payload == nil { // answered
			continue
		}
		if err := p.write(c.toServer); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := c.toServer.Flush(); err != nil {
				return err
			}
		}
	}
}

// command looks whether a rule holds for a packet of the client, and gives what the server shall get; nothing when it was
// answered.
func (c *conversation) command(p packet) (packet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready || p.seq != 0 || len(p.payload) == 0 || len(p.payload) == maxPacket {
		return p, nil
	}
	statement := string(p.payload[1:])
	for _, r := range c.proxy.rules {
		switch {
		case !r.matches(p.kind(), statement):
			continue
		case r.Error != nil:
			if err := r.Error.packet().write(c.toClient); err != nil {
				return packet{}, err
			}
			return packet{}, c.toClient.Flush()
		case r.Run != nil:
			return packet{0, append([]byte{p.kind()}, r.Run(statement)...)}, nil
		case p.kind() == comQuery:
			c.collect = &collector{statement: statement, edit: r.Edit}
		}
		return p, nil
	}
	return p, nil
}

func (c *conversation) fromServer(r *bufio.Reader) error {
	for {
		p, err := readPacket(r)
		if err != nil {
			return err
		}
		if err := c.pass(p, r.Buffered() == 0); err != nil {
			return err
		}
	}
}

// pass hands a packet of the server on, or to the collector.
func (c *conversation) pass(p packet, flush bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.kind() == okHeader && p.seq > 0 {
		c.ready = true
	}
	packets := []packet{p}
	if c.collect != nil {
		if !c.collect.take(p) {
			return nil
		}
		var err error
		if packets, err = c.collect.answer(); err != nil {
			return err
		}
		c.collect = nil
	}
	for _, p := range packets {
		if err := p.write(c.toClient); err != nil {
			return err
		}
	}
	if flush {
		return c.toClient.Flush()
	}
	return nil
}
