package tidemarktest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// Proxy stands between tidemark and its source and can cut what goes through it.
type Proxy struct {
	mysqltest.Login // the source's account at the proxy's address

	target   string
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
	refuse   bool
	limit    int64 // bytes from the source after which a connection is cut; 0: none
	wg       sync.WaitGroup
}

// NewProxy starts a proxy in front of a source. It ends with the test.
func NewProxy(tb testing.TB, source mysqltest.Login) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Login: source, target: source.Addr(), listener: l, open: map[net.Conn]bool{}}
	p.Host, p.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		l.Close()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
}

// Refuse makes the proxy close new connections at once, or let them through again.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// CutAfter makes each new connection break after so many bytes from the source; 0 ends that.
func (p *Proxy) CutAfter(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = bytes
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

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	limit, ok := p.keep(client)
	defer p.forget(client)
	if !ok {
		return
	}
	source, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer source.Close()
	p.keep(source)
	defer p.forget(source)
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(source, client)
		source.Close()
	})
	var from io.Reader = source
	if limit > 0 {
		from = io.LimitReader(source, limit)
	}
	_, _ = io.Copy(client, from)
	client.Close()
	source.Close()
	both.Wait()
}

func (p *Proxy) keep(c net.Conn) (limit int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return p.limit, !p.refuse
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}
