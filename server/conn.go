package server

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/server/admin"
)

// Commands, by the protocol's numbers.
const (
	comQuit            = 1
	comInitDB          = 2
	comQuery           = 3
	comFieldList       = 4
	comStatistics      = 9
	comProcessInfo     = 10
	comProcessKill     = 12
	comPing            = 14
	comChangeUser      = 17
	comStmtPrepare     = 22
	comStmtExecute     = 23
	comStmtSendLong    = 24
	comStmtClose       = 25
	comStmtReset       = 26
	comSetOption       = 27
	comStmtFetch       = 28
	comResetConnection = 31
)

// conn is one client. Its goroutine runs the commands one after the other; a second one reads ahead, so that a client
// that goes away is noticed while its statement runs.
type conn struct {
	server       *Server
	id           uint32
	net          net.Conn
	remote       net.Addr
	in           *packetReader
	out          *packetWriter
	nonce        []byte
	capabilities uint32
	packets      chan packet // nil before login
	session      *session
	statements   map[uint32]*statement
	lastID       uint32
	moreResults  uint16 // statusMoreResults while further statements of a packet follow
	row          []byte

	// what KILL and SHOW PROCESSLIST need
	mu      sync.Mutex
	command string
	info    string
	since   time.Time
	user    string
	db      string
	stop    context.CancelCauseFunc // of the running statement; nil: none runs
	end     context.CancelCauseFunc // of the connection
}

// Why a statement or a connection is stopped.
var (
	errClientGone = errors.New("the client is gone")
	errQuit       = errors.New("the client said good-bye")
	errFault      = errors.New("internal error")
	errKilled     = sqlerr.New(sqlerr.QueryInterrupted, "Query execution was interrupted")
	errTimeout    = sqlerr.New(sqlerr.QueryTimeout, "Query execution was interrupted, maximum statement execution time exceeded")
	errShutdown   = sqlerr.New(sqlerr.ServerShutdown, "Server shutdown in progress")
	errIdle       = sqlerr.New(4031, "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.")
)

func newConn(s *Server, id uint32, nc net.Conn) *conn {
	c := &conn{server: s, id: id, net: nc, remote: nc.RemoteAddr(), statements: map[uint32]*statement{}, command: "Connect", since: time.Now()}
	c.in, c.out = newPacketReader(nc), newPacketWriter(nc)
	c.session = newSession(s, c)
	return c
}

func (c *conn) host() string {
	host, _, err := net.SplitHostPort(c.remote.String())
	if err != nil || isLoopback(c.remote) {
		return "localhost"
	}
	return host
}

// serve runs the connection to its end.
func (c *conn) serve(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.mu.Lock()
	c.end = end
	c.mu.Unlock()
	defer c.closeAll()
	// closing the network is what ends reads and writes that wait
	network := c.net // TLS will stand in its place
	defer context.AfterFunc(ctx, func() { _ = network.Close() })()
	if err := c.handshake(ctx); err != nil {
		return err
	}
	c.packets = make(chan packet)
	go c.readAhead(ctx)
	for {
		c.setState("Sleep", "")
		p, err := c.wait(ctx)
		if err != nil {
			return err
		}
		c.out.seq = p.next
		if err := c.performGuarded(ctx, p.payload); err != nil {
			return err
		}
		if err := c.out.flush(); err != nil {
			return err
		}
	}
}

func (c *conn) closeAll() {
	for id := range c.statements {
		c.closeStatement(id)
	}
	c.session.close()
	_ = c.net.Close()
}

// readAhead hands over what the client sends, one packet at a time.
func (c *conn) readAhead(ctx context.Context) {
	defer close(c.packets)
	for {
		p, err := c.in.read()
		if errors.Is(err, errPacketTooLarge) {
			c.end(sqlerr.New(sqlerr.PacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes"))
			return
		}
		if err != nil {
			c.end(errClientGone)
			return
		}
		select {
		case c.packets <- p:
		case <-ctx.Done():
			return
		}
	}
}

// next gives the client's next packet.
func (c *conn) next() (packet, error) {
	if c.packets == nil {
		return c.in.read()
	}
	p, ok := <-c.packets
	if !ok {
		return p, errClientGone
	}
	return p, nil
}

// wait gives the next command, or an error when the client goes away or stays silent for too long.
func (c *conn) wait(ctx context.Context) (packet, error) {
	name := "wait_timeout"
	if c.capabilities&capInteractive != 0 {
		name = "interactive_timeout"
	}
	idle := time.NewTimer(time.Duration(c.session.number(name)) * time.Second)
	defer idle.Stop()
	select {
	case p, ok := <-c.packets:
		if !ok {
			return p, errClientGone
		}
		return p, nil
	case <-idle.C:
		return packet{}, c.refuse(errIdle)
	case <-ctx.Done():
		return packet{}, context.Cause(ctx)
	}
}

func (c *conn) setState(command, info string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.command, c.info, c.since = command, info, time.Now()
	c.user, c.db = c.session.user, c.session.database
}

// performGuarded runs one command. A fault of our own in it ends the connection and not the process, which follows the
// sources for everybody else: statements only read, so nothing that they leave half done matters to others.
func (c *conn) performGuarded(ctx context.Context, payload []byte) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.server.logger.Error("a statement met a fault of Tidemark's own; its connection is ended", "connection", c.id, "fault", p, "stack", string(debug.Stack()))
		fault := c.writeError(sqlerr.New(sqlerr.Unknown, "Internal error of Tidemark; the server's log has the details. Please report it, with the statement"))
		err = errors.Join(errFault, fault, c.out.flush())
	}()
	return c.perform(ctx, payload)
}

// perform runs one command. Its error ends the connection; errors of the command itself have been sent.
func (c *conn) perform(ctx context.Context, payload []byte) error {
	if len(payload) == 0 {
		return c.writeError(errMalformed())
	}
	body := payload[1:]
	switch payload[0] {
	case comQuit:
		return errQuit
	case comPing:
		return c.writeOK(okResult{})
	case comInitDB:
		return c.reply(c.session.use(decodeText(c.session.clientCharset, body)))
	case comQuery:
		return c.query(ctx, decodeText(c.session.clientCharset, body))
	case comFieldList:
		return c.fieldList(body)
	case comStatistics:
		return c.out.write([]byte(c.server.statistics()))
	case comProcessKill:
		d := decoder{b: body}
		return c.reply(c.server.kill(uint32(d.uint(4)), false, c.session))
	case comChangeUser:
		return c.changeUser(body)
	case comResetConnection:
		c.resetStatements()
		c.session.reset()
		return c.writeOK(okResult{})
	case comSetOption:
		return c.setOption(body)
	}
	return c.preparedCommand(ctx, payload[0], body)
}

func errMalformed() error {
	return sqlerr.New(sqlerr.MalformedPacket, "Malformed communication packet")
}

// reply sends an OK or the error.
func (c *conn) reply(err error) error {
	if err != nil {
		return c.writeError(clientError(err))
	}
	return c.writeOK(okResult{})
}

func (c *conn) setOption(body []byte) error {
	d := decoder{b: body}
	switch option := d.uint(2); {
	case d.bad || option > 1:
		return c.writeError(sqlerr.New(sqlerr.UnknownCommand, "Unknown command"))
	case option == 0:
		c.capabilities |= capMultiStatements
	default:
		c.capabilities &^= capMultiStatements
	}
	return c.endRows(c.status())
}

// query runs the statements of a COM_QUERY. What fails ends the sequence.
func (c *conn) query(ctx context.Context, text string) error {
	statements := []string{text}
	if c.capabilities&capMultiStatements != 0 {
		if statements = admin.Split(text); len(statements) == 0 {
			statements = []string{text}
		}
	}
	defer func() { c.moreResults = 0 }()
	for i, st := range statements {
		c.moreResults = 0
		if i < len(statements)-1 {
			c.moreResults = statusMoreResults
		}
		failed, err := c.runStatement(ctx, st, textRow, func(ctx context.Context) (outcome, error) { return c.session.execute(ctx, st) })
		if failed || err != nil {
			return err
		}
	}
	return nil
}

// runStatement runs one statement and sends what it gives. failed tells that an error was sent in its place; err that
// the connection is lost.
func (c *conn) runStatement(ctx context.Context, text string, encode rowEncoder, do func(context.Context) (outcome, error)) (failed bool, err error) {
	ctx, finish := c.begin(ctx, text)
	defer finish()
	o, err := do(ctx)
	if err == nil {
		err = c.send(ctx, o, encode)
	}
	if err == nil || c.out.err != nil {
		return err != nil, c.out.err
	}
	if stopped := context.Cause(ctx); stopped != nil {
		err = stopped
		c.session.warnings = nil
		c.session.warn("Error", clientError(err).Code, "%s", clientError(err).Message)
	}
	c.moreResults = 0
	return true, c.writeError(clientError(err))
}

func (c *conn) send(ctx context.Context, o outcome, encode rowEncoder) error {
	if o.rows == nil {
		return c.writeOK(o.ok)
	}
	defer o.rows.Close()
	return c.writeRows(ctx, o.rows, encode)
}

// begin makes the context of a statement, which KILL, max_execution_time and the client's end stop.
func (c *conn) begin(ctx context.Context, text string) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	c.server.countQuestion()
	c.setState("Query", text)
	c.mu.Lock()
	c.stop = stop
	c.mu.Unlock()
	var timer *time.Timer
	if ms := c.session.number("max_execution_time"); ms > 0 {
		timer = time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { stop(errTimeout) })
	}
	return ctx, func() {
		if timer != nil {
			timer.Stop()
		}
		c.mu.Lock()
		c.stop = nil
		c.mu.Unlock()
		stop(nil)
	}
}

// interrupt stops the running statement, if one runs.
func (c *conn) interrupt(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop(cause)
	}
}

// fieldList answers the question of old clients for a table's columns.
func (c *conn) fieldList(body []byte) error {
	d := decoder{b: body}
	table, pattern := d.zeroString(), string(d.rest())
	fields, err := c.session.tableFields(table, pattern)
	if err != nil {
		return c.writeError(clientError(err))
	}
	for i := range fields {
		b := append(c.appendField(nil, &fields[i]), cellNull)
		if err := c.out.write(b); err != nil {
			return err
		}
	}
	return c.endRows(c.status())
}

// changeUser logs in again on the same connection.
func (c *conn) changeUser(body []byte) error {
	l, err := parseChangeUser(body, c.capabilities)
	if err != nil {
		return c.writeError(err)
	}
	if err := c.authenticate(l); err != nil {
		return c.refuse(err)
	}
	c.resetStatements()
	c.session.reset()
	return c.reply(c.session.login(l))
}

func parseChangeUser(body []byte, capabilities uint32) (login, error) {
	d := decoder{b: body}
	l := login{capabilities: capabilities, user: d.zeroString(), charset: uint8(field.UTF8MB4), plugin: nativePassword}
	l.answer = d.bytes(d.uint(1))
	l.database = d.zeroString()
	if len(d.b) >= 2 {
		l.charset = uint8(d.uint(2))
	}
	if capabilities&capPluginAuth != 0 && len(d.b) > 0 {
		l.plugin = d.zeroString()
	}
	if capabilities&capConnectAttrs != 0 && len(d.b) > 0 {
		l.attributes = parseAttributes(d.lenBytes())
	}
	if d.bad {
		return l, errMalformed()
	}
	return l, nil
}
