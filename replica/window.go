package replica

import (
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
)

// windowVersion is the version of the form below.
const windowVersion = 1

var errWindow = errors.New("the stored window of a copy can't be read")

// encodeWindow gives the durable form of a table's window, nil for none: u8 version, u8 flags (bit 0: bracket), From as a
// point and To as a position (docs/format/gtid.md). See docs/format/point.md.
func encodeWindow(w *replay.Window) []byte {
	if w == nil {
		return nil
	}
	b := []byte{windowVersion, 0}
	if w.Bracket {
		b[1] = 1
	}
	return w.To.AppendBinary(w.From.AppendBinary(b))
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
	if w.To, b, err = gtid.DecodePosition(b); err != nil {
		return nil, fmt.Errorf("%w: %w", errWindow, err)
	}
	if len(b) > 0 {
		return nil, errWindow
	}
	return w, nil
}
