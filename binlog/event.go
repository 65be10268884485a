package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tidemarkdb/tidemark/gtid"
)

// eventType numbers follow mysql-server, libs/mysql/binlog/event/binlog_event.h.
type eventType uint8

const (
	evQuery              eventType = 2
	evStop               eventType = 3
	evRotate             eventType = 4
	evIntVar             eventType = 5
	evAppendBlock        eventType = 9
	evDeleteFile         eventType = 11
	evRand               eventType = 13
	evUserVar            eventType = 14
	evFormatDescription  eventType = 15
	evXID                eventType = 16
	evBeginLoadQuery     eventType = 17
	evExecuteLoadQuery   eventType = 18
	evTableMap           eventType = 19
	evWriteRowsV1        eventType = 23
	evUpdateRowsV1       eventType = 24
	evDeleteRowsV1       eventType = 25
	evIncident           eventType = 26
	evHeartbeat          eventType = 27
	evIgnorable          eventType = 28
	evRowsQuery          eventType = 29
	evWriteRows          eventType = 30
	evUpdateRows         eventType = 31
	evDeleteRows         eventType = 32
	evGTID               eventType = 33
	evAnonymousGTID      eventType = 34
	evPreviousGTIDs      eventType = 35
	evTransactionContext eventType = 36
	evViewChange         eventType = 37
	evXAPrepare          eventType = 38
	evPartialUpdateRows  eventType = 39
	evTransactionPayload eventType = 40
	evHeartbeatV2        eventType = 41
	evGTIDTagged         eventType = 42
)

// Flags of an event header.
const (
	flagInUse      = 0x01
	flagArtificial = 0x20
	flagRelay      = 0x40 // of a format description: the checksums of the events behind it were added when they were spooled
	flagIgnorable  = 0x80
)

const (
	headerSize   = 19
	checksumSize = 4
)

// header is the 19 bytes in front of every event.
type header struct {
	Timestamp uint32 // seconds; 0 for events that the dump thread makes up
	Type      eventType
	Size      uint32 // header and checksum included
	LogPos    uint32 // low 32 bits of the offset behind the event; 0 if the event is not in the file
	Flags     uint16
}

func parseHeader(b []byte) (header, error) {
	if len(b) < headerSize {
		return header{}, errShort
	}
	h := header{
		Timestamp: binary.LittleEndian.Uint32(b), Type: eventType(b[4]), Size: binary.LittleEndian.Uint32(b[9:]),
		LogPos: binary.LittleEndian.Uint32(b[13:]), Flags: binary.LittleEndian.Uint16(b[17:]),
	}
	if h.Size < headerSize {
		return header{}, fmt.Errorf("event size %d", h.Size)
	}
	return h, nil
}

// inFile reports whether the event stands in the binlog file, as opposed to being made up for this connection.
func (h header) inFile() bool { return h.LogPos != 0 && h.Flags&flagArtificial == 0 }

// event is one event without its header and checksum.
type event struct {
	header
	body []byte
}

// parseEvent splits raw, one whole event, and verifies its checksum if it has one. A format description event tells
// by itself whether it has.
func parseEvent(raw []byte, checksum bool) (event, error) {
	h, err := parseHeader(raw)
	if err != nil {
		return event{}, err
	}
	if int64(h.Size) != int64(len(raw)) {
		return event{}, fmt.Errorf("event of %d bytes says it has %d", len(raw), h.Size)
	}
	if h.Type == evFormatDescription {
		if checksum, err = formatHasChecksum(raw); err != nil {
			return event{}, err
		}
	}
	body := raw[headerSize:]
	if !checksum {
		return event{h, body}, nil
	}
	if len(body) < checksumSize {
		return event{}, errShort
	}
	if got, want := eventChecksum(raw, h), binary.LittleEndian.Uint32(raw[len(raw)-checksumSize:]); got != want {
		return event{}, fmt.Errorf("checksum of event type %d is %08x, computed %08x", h.Type, want, got)
	}
	return event{h, body[:len(body)-checksumSize]}, nil
}

// eventChecksum computes the CRC32 of all but the last 4 bytes. A file that is being written has the in-use flag set
// in its format description event, which the checksum does not cover.
func eventChecksum(raw []byte, h header) uint32 {
	raw = raw[:len(raw)-checksumSize]
	if h.Type != evFormatDescription || h.Flags&flagInUse == 0 {
		return crc32.ChecksumIEEE(raw)
	}
	head := bytes.Clone(raw[:headerSize])
	head[17] &^= flagInUse
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, raw[headerSize:])
}

// formatDescription is what is needed of a FORMAT_DESCRIPTION event.
type formatDescription struct {
	Checksum bool
	Restart  bool // first file since the server started: what was open in the file before is rolled back
	Created  uint32
	Sealed   bool // the events have checksums that they did not have on their source
}

const (
	formatFixedSize = 2 + 50 + 4 + 1
	checksumCRC32   = 1
)

// formatHasChecksum reads the algorithm byte, which stands in front of the checksum whatever the algorithm is.
func formatHasChecksum(raw []byte) (bool, error) {
	if len(raw) < headerSize+formatFixedSize+1+checksumSize {
		return false, errShort
	}
	switch alg := raw[len(raw)-checksumSize-1]; alg {
	case 0, checksumCRC32:
		return alg == checksumCRC32, nil
	default:
		return false, fmt.Errorf("checksum algorithm %d is not known", alg)
	}
}

func parseFormatDescription(e event, raw []byte) (formatDescription, error) {
	sum, err := formatHasChecksum(raw)
	if err != nil {
		return formatDescription{}, err
	}
	c := cursor{b: e.body}
	version := c.u16()
	c.take(50)
	created, headerLen := c.u32(), c.u8()
	post := c.b
	if c.err != nil || version != 4 || headerLen != headerSize {
		return formatDescription{}, fmt.Errorf("binlog format version %d with a header of %d bytes", version, headerLen)
	}
	for typ, size := range map[eventType]uint8{evQuery: 13, evTableMap: 8, evWriteRows: 10} {
		if int(typ) > len(post) || post[typ-1] != size {
			return formatDescription{}, fmt.Errorf("event type %d has an unexpected post-header; servers before MySQL 5.6 are not supported", typ)
		}
	}
	return formatDescription{Checksum: sum, Restart: created != 0, Created: e.Timestamp, Sealed: e.Flags&flagRelay != 0}, nil
}

func parseRotate(b []byte) (gtid.Position, error) {
	c := cursor{b: b}
	off := c.u64()
	if c.err != nil || len(c.b) == 0 {
		return gtid.Position{}, errShort
	}
	return gtid.Position{File: string(c.b), Offset: off}, nil
}

// parseHeartbeat gives the file and, for the second form, the offset, which the first has in its header.
func parseHeartbeat(e event) (gtid.Position, error) {
	if e.Type == evHeartbeat {
		return gtid.Position{File: string(e.body), Offset: uint64(e.LogPos)}, nil
	}
	var p gtid.Position
	c := cursor{b: e.body}
	for len(c.b) > 0 {
		kind := c.lenenc()
		if kind == 0 {
			break
		}
		field := cursor{b: c.take(c.length())}
		switch kind {
		case 1:
			p.File = string(field.b)
		case 2:
			p.Offset = field.lenenc()
		}
		c.check(field.err)
	}
	return p, c.err
}

func (c *cursor) check(err error) {
	if err != nil {
		c.fail(err)
	}
}

// gtidEvent is the head of a transaction.
type gtidEvent struct {
	GTID            gtid.GTID // zero for an anonymous transaction
	ImmediateCommit uint64    // microseconds since 1970; 0 from servers before 8.0
	OriginalCommit  uint64
}

func parseGTID(b []byte, anonymous bool) (gtidEvent, error) {
	var g gtidEvent
	c := cursor{b: b}
	c.u8() // flags
	var id gtid.GTID
	copy(id.Source[:], c.take(16))
	id.Number = int64(c.u64())
	if c.err != nil {
		return g, c.err
	}
	if !anonymous {
		g.GTID = id
		if id.Number < 1 || id.Number > gtid.MaxNumber {
			return g, fmt.Errorf("transaction number %d", id.Number)
		}
	}
	if len(c.b) < 1+16+7 || c.b[0] != 2 {
		return g, nil
	}
	c.take(1 + 16) // logical clock
	const hasOriginal = 1 << 55
	g.ImmediateCommit = c.uint(7)
	g.OriginalCommit = g.ImmediateCommit
	if g.ImmediateCommit&hasOriginal != 0 {
		g.ImmediateCommit &^= hasOriginal
		g.OriginalCommit = c.uint(7)
	}
	return g, c.err
}

// parseTaggedGTID reads mysql::serialization's message: a version, the size, the last field that may not be ignored,
// then fields, each behind its number. Fields of later versions are at the end and may be left out of account.
func parseTaggedGTID(b []byte) (gtidEvent, error) {
	var g gtidEvent
	c := cursor{b: b}
	if v := c.varlen(); c.err == nil && v != 1 {
		return g, fmt.Errorf("tagged GTID event of serialization version %d", v)
	}
	c.varlen() // message size
	lastNeeded := c.varlen()
	for len(c.b) > 0 && c.err == nil {
		switch field := c.varlen(); field {
		case 0:
			c.varlen()
		case 1:
			for i := range g.GTID.Source {
				g.GTID.Source[i] = byte(c.varlen())
			}
		case 2:
			g.GTID.Number = c.varlenSigned()
		case 3:
			n := c.varlen()
			if n > 32 {
				return g, errors.New("tag longer than 32 bytes")
			}
			g.GTID.Tag = string(c.take(int(n)))
		case 4, 5:
			c.varlenSigned()
		case 6:
			g.ImmediateCommit = c.varlen()
		case 7:
			g.OriginalCommit = c.varlen()
		case 8, 9, 10, 11:
			c.varlen()
		default:
			if field <= lastNeeded {
				return g, fmt.Errorf("tagged GTID event has the unknown field %d", field)
			}
			c.b = nil
		}
	}
	if g.OriginalCommit == 0 {
		g.OriginalCommit = g.ImmediateCommit
	}
	if c.err == nil && (g.GTID.Number < 1 || g.GTID.Number > gtid.MaxNumber) {
		return g, fmt.Errorf("transaction number %d", g.GTID.Number)
	}
	return g, c.err
}

// XID names an XA transaction.
type XID struct {
	FormatID uint32
	GTRID    string
	BQUAL    string
}

// parseXAPrepare reads the event that ends the first phase of an XA transaction, or all of it.
func parseXAPrepare(b []byte) (id XID, onePhase bool, err error) {
	c := cursor{b: b}
	onePhase = c.u8() != 0
	id.FormatID = c.u32()
	n, m := c.u32(), c.u32()
	if n > 64 || m > 64 {
		return XID{}, false, fmt.Errorf("XA id of %d and %d bytes", n, m)
	}
	id.GTRID, id.BQUAL = string(c.take(int(n))), string(c.take(int(m)))
	return id, onePhase, c.err
}

// payload is the content of a TRANSACTION_PAYLOAD event.
type payload struct {
	data         []byte
	zstd         bool
	uncompressed uint64
}

func parsePayload(b []byte) (payload, error) {
	const (
		endMark, sizeField, typeField, uncompressedField = 0, 1, 2, 3
		typeZstd, typeNone                               = 0, 255
	)
	p := payload{}
	kind := uint64(typeNone)
	size := uint64(0)
	c := cursor{b: b}
	for c.err == nil {
		tag := c.lenenc()
		if tag == endMark {
			break
		}
		field := cursor{b: c.take(c.length())}
		v := field.lenenc()
		c.check(field.err)
		switch tag {
		case sizeField:
			size = v
		case typeField:
			kind = v
		case uncompressedField:
			p.uncompressed = v
		}
	}
	if c.err != nil {
		return p, c.err
	}
	if kind != typeZstd && kind != typeNone {
		return p, fmt.Errorf("transaction payload has the unknown compression type %d", kind)
	}
	if size > uint64(len(c.b)) {
		return p, errShort
	}
	p.data, p.zstd = c.b[:size], kind == typeZstd
	return p, nil
}
