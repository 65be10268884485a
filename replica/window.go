package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
)

// windowVersion is the version of the form below.
const windowVersion = 1

var errWindow = errors.New("the stored window of a copy can't be read")

// encodeWindow gives the durable form of a table's window, nil for none: u8 version, u8 flags (bit 0: bracket), From as a
// point (docs/format/gtid.md), then To: uvarint length and bytes of the file's name, uvarint offset. See
// docs/format/point.md.
func encodeWindow(w *replay.Window) []byte {
	if w == nil {
		return nil
	}
	b := []byte{windowVersion, 0}
	if w.Bracket {
		b[1] = 1
	}
	b = w.From.AppendBinary(b)
	b = binary.AppendUvarint(b, uint64(len(w.To.File)))
	b = append(b, w.To.File...)
	return binary.AppendUvarint(b, w.To.Offset)
}

func decodeWindow(b []byte) (*replay.Window, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // no window
	}
	if len(b) < 2 || b[0] != windowVersion || b[1] > 1 {
		return nil, errWindow
	}
	w := &replay.Window{Bracket: b[1] == 1}
	var err error
	if w.From, b, err = gtid.DecodePoint(b[2:]); err != nil {
		return nil, fmt.Errorf("%w: %w", errWindow, err)
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, errWindow
	}
	w.To.File, b = string(b[n:n+int(size)]), b[n+int(size):]
	if w.To.Offset, n = binary.Uvarint(b); n <= 0 || n != len(b) {
		return nil, errWindow
	}
	return w, nil
}
