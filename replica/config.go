package replica

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/storage"
)

// configVersion is the version of the durable configuration of a database.
const configVersion = 1

// config is what is kept of a database besides its rows, as JSON in the store. Unlike everything that is shown it has the
// password, without which a restart could not go on.
type config struct {
	Version int
	Spec    Spec
	// ServerID is the id under which the source sees us, for life.
	ServerID uint32
	// Stopped tells that the database was stopped by SYSTEM STOP and stays so over restarts.
	Stopped bool `json:",omitempty"`
	// ByPosition tells that the database is followed by file and position, because the source had no GTIDs when it was
	// copied. It stays so: which GTIDs are in the copy is not known, even if the source has some by now.
	ByPosition bool `json:",omitempty"`
	// Encrypted tells that a connection to the source was encrypted; see [wire.TLS].
	Encrypted bool `json:",omitempty"`
	// TimeZone is the source's own, as it was when we last connected.
	TimeZone string `json:",omitempty"`
	// Resyncs are the new copies of tables that are asked for, have failed, or came lately, by table name.
	Resyncs map[string]resync `json:",omitempty"`
	// Facts are what applying its log depends on, as it was then; nil before that.
	Facts *facts `json:",omitempty"`
	// Copy is the first copy; nil before it has begun, and of one that was made before this was kept.
	Copy *copyRecord `json:",omitempty"`
}

func (c *config) encode() ([]byte, error) { return json.Marshal(c) }

func decodeConfig(b []byte) (*config, error) {
	c := &config{Spec: Spec{Settings: DefaultSettings()}} // settings that came later are not in it
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("the stored configuration can't be read: %w", err)
	}
	if c.Version != configVersion {
		return nil, fmt.Errorf("%w: the stored configuration has version %d", storage.ErrNewerFormat, c.Version)
	}
	return c, nil
}

// pointVersion is the version of the form below.
const pointVersion = 1

var errPoint = errors.New("the stored position can't be read")

// encodePoint gives the durable form of where a database stands: u8 version, point, identity (docs/format/gtid.md),
// uvarint rows applied, then the default character set and collation of the source's database, each uvarint length and
// bytes. See docs/format/point.md.
func encodePoint(s *replay.State) []byte {
	b := s.Last.AppendBinary(s.Point.AppendBinary([]byte{pointVersion}))
	b = binary.AppendUvarint(b, s.Rows)
	for _, text := range []string{s.Charset, s.Collation} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

func decodePoint(b []byte) (replay.State, error) {
	var s replay.State
	if len(b) == 0 || b[0] != pointVersion {
		return s, errPoint
	}
	var err error
	if s.Point, b, err = gtid.DecodePoint(b[1:]); err != nil {
		return s, fmt.Errorf("%w: %w", errPoint, err)
	}
	if s.Last, b, err = gtid.DecodeIdentity(b); err != nil {
		return s, fmt.Errorf("%w: %w", errPoint, err)
	}
	rows, n := binary.Uvarint(b)
	if n <= 0 {
		return s, errPoint
	}
	s.Rows, b = rows, b[n:]
	for _, text := range []*string{&s.Charset, &s.Collation} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return s, errPoint
		}
		*text, b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	if len(b) > 0 {
		return s, errPoint
	}
	return s, nil
}

// loadState gives the committed state of a database. ok is false before the first copy is complete.
func loadState(store *storage.Store, db storage.DatabaseInfo) (s replay.State, ids map[string]storage.TableID, ok bool, err error) {
	if db.Point == nil {
		return s, nil, false, nil
	}
	if s, err = decodePoint(db.Point); err != nil {
		return s, nil, false, err
	}
	s.Tables, ids = map[string]replay.Table{}, map[string]storage.TableID{}
	for _, t := range store.Tables(db.ID) {
		window, err := decodeWindow(t.Window)
		if err != nil {
			return s, nil, false, fmt.Errorf("table %s: %w", t.Def.Name, err)
		}
		s.Tables[t.Def.Name] = replay.Table{Def: t.Def, Live: t.State != storage.Quarantined, Window: window}
		ids[t.Def.Name] = t.ID
	}
	return s, ids, true, nil
}
