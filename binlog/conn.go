package binlog

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// link is one connection to a source.
type link struct {
	conn      *wire.Conn
	deadAfter time.Duration
}

// startPatience is how long a source may take to find the file where a stream begins, of which it gives no sign.
const startPatience = 30 * time.Second

// connect logs in. Until the first event comes the source may be silent for longer.
func connect(ctx context.Context, cfg Config) (*link, error) {
	cfg.Source.ReadTimeout = max(cfg.DeadAfter, startPatience)
	conn, err := wire.Login(ctx, cfg.Source)
	if err != nil {
		return nil, connectionError(ctx, "connect", err)
	}
	return &link{conn, cfg.DeadAfter}, nil
}

func (l *link) close() error { return l.conn.Close() }

// closeOn closes the connection when ctx ends, which wakes a read in progress. The result undoes it.
func (l *link) closeOn(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = l.conn.Close() })
}

// row runs a query and gives the columns of its first row as text, NULL as the empty string; nil without a row.
func (l *link) row(ctx context.Context, query string) ([]string, error) {
	rows, err := l.rows(ctx, query)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

func (l *link) rows(ctx context.Context, query string) ([][]string, error) {
	r, err := l.conn.Query(ctx, query)
	if err != nil {
		return nil, connectionError(ctx, query, err)
	}
	out := make([][]string, r.Rows())
	for i := range out {
		out[i] = make([]string, r.Columns())
		for j := range out[i] {
			out[i][j] = r.Text(i, j)
		}
	}
	return out, nil
}

// source is what a server says about itself.
type source struct {
	uuid     gtid.UUID
	serverID string
	gtidMode string
	purged   gtid.Set
}

func (l *link) source(ctx context.Context) (source, error) {
	var s source
	r, err := l.row(ctx, "SELECT @@server_uuid, @@server_id, @@global.gtid_mode, @@global.gtid_purged")
	if err != nil {
		return s, err
	}
	if len(r) != 4 {
		return s, fault(Misconfigured, "the source does not say who it is; is it MySQL?")
	}
	s.serverID, s.gtidMode = r[1], r[2]
	if s.uuid, err = gtid.ParseUUID(r[0]); err != nil {
		return s, fault(Misconfigured, "server_uuid of the source: %w", err)
	}
	if s.purged, err = gtid.ParseSet(r[3]); err != nil {
		return s, fault(Misconfigured, "gtid_purged of the source: %w", err)
	}
	return s, nil
}

// setup prepares the session for a dump. The reader declares that it takes events without a checksum; that concerns
// only the event that names the first file. All others are sent as they stand in the file, and verified here.
func (l *link) setup(ctx context.Context, cfg Config) error {
	const patience = 8 * 3600 // seconds that the source waits for a slow reader; its default is 60
	settings := []string{
		"@master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'",
		fmt.Sprintf("@master_heartbeat_period = %d, @source_heartbeat_period = %[1]d", cfg.Heartbeat.Nanoseconds()),
		fmt.Sprintf("SESSION net_write_timeout = %d, SESSION net_read_timeout = %[1]d, SESSION wait_timeout = %[1]d", patience),
	}
	if cfg.ServerID != 0 {
		settings = append(settings, fmt.Sprintf("@slave_uuid = '%s', @replica_uuid = '%[1]s'", cfg.ReplicaUUID))
	}
	for _, s := range settings {
		if _, err := l.rows(ctx, "SET "+s); err != nil {
			return err
		}
	}
	return nil
}

// checkServerID finds another reader that is registered under our server id.
func (l *link) checkServerID(ctx context.Context, cfg Config, s source) error {
	if s.serverID == fmt.Sprint(cfg.ServerID) {
		return fault(DuplicateServerID, "server id %d is the source's own; choose another", cfg.ServerID)
	}
	rows, err := l.rows(ctx, "SHOW REPLICAS")
	if wire.Code(err) == wire.CodeParse {
		rows, err = l.rows(ctx, "SHOW SLAVE HOSTS") // before 8.0.22
	}
	if err != nil {
		return err
	}
	for _, r := range rows {
		// Server_Id, Host, Port, Source_Id, Replica_UUID
		if len(r) < 5 || r[0] != fmt.Sprint(cfg.ServerID) || strings.EqualFold(r[4], cfg.ReplicaUUID.String()) {
			continue
		}
		return fault(DuplicateServerID, "server id %d is in use by another replica, host %q, UUID %s; choose another", cfg.ServerID, r[1], r[4])
	}
	return nil
}

// register makes the reader visible in SHOW REPLICAS.
func (l *link) register(ctx context.Context, cfg Config) error {
	data := []byte{mysql.COM_REGISTER_SLAVE}
	data = binary.LittleEndian.AppendUint32(data, cfg.ServerID)
	data = append(data, byte(len("tidemark")))
	data = append(data, "tidemark"...)
	data = append(data, 0, 0)                        // user and password, shown to nobody
	data = binary.LittleEndian.AppendUint16(data, 0) // port
	data = append(data, 0, 0, 0, 0, 0, 0, 0, 0)      // rank, source id
	if err := l.conn.Command(ctx, true, data...); err != nil {
		return connectionError(ctx, "register as a replica", err)
	}
	return nil
}

// dump is the request of a binlog stream.
type dump struct {
	serverID uint32
	nonBlock bool
	auto     bool
	set      gtid.Set
	pos      gtid.Position
}

const dumpNonBlock = 1

// start sends the request and gives the packets that answer it. The connection must not be used otherwise afterwards.
func (l *link) start(ctx context.Context, d dump) (*packets, error) {
	var flags uint16
	if d.nonBlock {
		flags = dumpNonBlock
	}
	var data []byte
	if d.auto {
		set := d.set.AppendMySQL(nil)
		data = binary.LittleEndian.AppendUint16(append(data, mysql.COM_BINLOG_DUMP_GTID), flags)
		data = binary.LittleEndian.AppendUint32(data, d.serverID)
		data = binary.LittleEndian.AppendUint32(data, 0) // no file name: the set decides
		data = binary.LittleEndian.AppendUint64(data, 4)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(set))), set...)
	} else {
		data = binary.LittleEndian.AppendUint32(append(data, mysql.COM_BINLOG_DUMP), uint32(max(d.pos.Offset, 4)))
		data = binary.LittleEndian.AppendUint16(data, flags)
		data = append(binary.LittleEndian.AppendUint32(data, d.serverID), d.pos.File...)
	}
	if err := l.conn.Command(ctx, false, data...); err != nil {
		return nil, connectionError(ctx, "ask for the binlog", err)
	}
	begun := func() { l.conn.SetReadTimeout(l.deadAfter) }
	return &packets{r: bufio.NewReaderSize(l.conn.Network(), 256<<10), seq: 1, begun: begun}, nil
}

// maxEvent is the largest event that a server writes: max_allowed_packet is at most 1 GiB.
const maxEvent = 1<<30 + 1<<20

// packets takes events out of the packets of a binlog stream.
type packets struct {
	r     *bufio.Reader
	seq   uint8
	arena arena
	begun func() // called when the first packet has come
}

const maxPacket = 1<<24 - 1

// next reads one event, header and checksum included. io.EOF is the source's regular end of a stream that does not
// wait; a lost connection is io.ErrUnexpectedEOF or the network's error.
func (p *packets) next() ([]byte, error) {
	n, err := p.header()
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fault(Corrupt, "empty packet")
	}
	status, err := p.r.ReadByte()
	if err != nil {
		return nil, unexpected(err)
	}
	switch status {
	case mysql.OK_HEADER:
		return p.event(n - 1)
	case mysql.EOF_HEADER:
		return nil, io.EOF
	case mysql.ERR_HEADER:
		return nil, p.serverError(n - 1)
	}
	return nil, fault(Corrupt, "packet of unknown kind %#x", status)
}

// event reads an event whose first packet has n bytes of it. An event goes on in the next packet if its packet is
// full, even if nothing is left.
func (p *packets) event(n int) ([]byte, error) {
	if n+1 < maxPacket {
		b := p.arena.alloc(n)
		_, err := io.ReadFull(p.r, b)
		return b, unexpected(err)
	}
	head, err := p.r.Peek(headerSize)
	if err != nil {
		return nil, unexpected(err)
	}
	size := binary.LittleEndian.Uint32(head[9:])
	if size > maxEvent || int(size) < n {
		return nil, fault(Corrupt, "event says it has %d bytes", size)
	}
	b := p.arena.alloc(int(size))
	rest := b
	for full := true; full; {
		if n > len(rest) {
			return nil, fault(Corrupt, "event says it has %d bytes and has more", size)
		}
		if _, err := io.ReadFull(p.r, rest[:n]); err != nil {
			return nil, unexpected(err)
		}
		// The first packet has the status byte besides.
		full = n == maxPacket || len(rest) == len(b) && n == maxPacket-1
		rest = rest[n:]
		if full {
			if n, err = p.header(); err != nil {
				return nil, err
			}
		}
	}
	if len(rest) > 0 {
		return nil, fault(Corrupt, "event says it has %d bytes and lacks %d", size, len(rest))
	}
	return b, nil
}

// header reads length and sequence number of a packet.
func (p *packets) header() (int, error) {
	var h [4]byte
	if _, err := io.ReadFull(p.r, h[:]); err != nil {
		return 0, unexpected(err)
	}
	if h[3] != p.seq {
		return 0, fault(Corrupt, "packet number %d where %d should come", h[3], p.seq)
	}
	if p.seq++; p.begun != nil {
		p.begun()
		p.begun = nil
	}
	return int(h[0]) | int(h[1])<<8 | int(h[2])<<16, nil
}

// serverError reads an error packet: u16 code, '#', five bytes of SQL state, message.
func (p *packets) serverError(n int) error {
	b := make([]byte, n)
	if _, err := io.ReadFull(p.r, b); err != nil {
		return unexpected(err)
	}
	if len(b) < 2 {
		return fault(Corrupt, "error packet of %d bytes", n)
	}
	my := &mysql.MyError{Code: binary.LittleEndian.Uint16(b), Message: string(b[2:])}
	if len(b) >= 8 && b[2] == '#' {
		my.State, my.Message = string(b[3:8]), string(b[8:])
	}
	return my
}

// unexpected tells a connection that ended from the regular end of a stream.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
