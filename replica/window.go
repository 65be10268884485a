package replica

import (
	"encoding/binary"
	"errors"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
)

// windowVersion is the version of the form below.
const windowVersion = 1

var errWindow = errors.New("the stored window of a copy can't be read")

// encodeWindow gives the durable form of a table's window, nil for none: u8 version, u8 flags (bit 0: bracket), then From
// and To, each uvarint length and bytes of the file's name and uvarint offset. See docs/format/point.md.
func encodeWindow(w *replay.Window) []byte {
	if w == nil {
		return nil
	}
	b := []byte{windowVersion, 0}
	if w.Bracket {
		b[1] = 1
	}
	for _, p := range []gtid.Position{w.From, w.To} {
		b = binary.AppendUvarint(b, uint64(len(p.File)))
		b = append(b, p.File...)
		b = binary.AppendUvarint(b, p.Offset)
	}
	return b
}

func decodeWindow(b []byte) (*replay.Window, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // no window
	}
	if len(b) < 2 || b[0] != windowVersion || b[1] > 1 {
		return nil, errWindow
	}
	w := &replay.Window{Bracket: b[1] == 1}
	b = b[2:]
	for _, p := range []*gtid.Position{&w.From, &w.To} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errWindow
		}
		p.File, b = string(b[n:n+int(size)]), b[n+int(size):]
		if p.Offset, n = binary.Uvarint(b); n <= 0 {
			return nil, errWindow
		}
		b = b[n:]
	}
	if len(b) > 0 {
		return nil, errWindow
	}
	return w, nil
}
