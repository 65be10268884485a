package replica

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// anchorFiles bounds the binlog files that are looked at for a transaction.
const anchorFiles = 4

// anchor gives the identity of a transaction that is in the copy, so that a source that is reset before the first
// transaction behind the copy is recognised, too. It takes the first one of the newest binlog file that has any in front
// of the cut; finding the last one would mean to read the whole file. The zero identity is for a source without any.
func (d *database) anchor(ctx context.Context, cut gtid.Position) (gtid.Identity, error) {
	files, err := d.binlogFiles(ctx)
	if err != nil {
		return gtid.Identity{}, err
	}
	at := slices.Index(files, cut.File)
	for i := at; i >= 0 && i > at-anchorFiles; i-- {
		id, err := d.firstIn(ctx, files[i], cut)
		if err != nil || !id.IsZero() {
			return id, err
		}
	}
	return gtid.Identity{}, nil
}

func (d *database) binlogFiles(ctx context.Context) ([]string, error) {
	c, err := wire.Dial(ctx, d.wire())
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // only read from
	r, err := c.Query(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range r.Rows() {
		out = append(out, r.Text(i, 0))
	}
	return out, nil
}

// firstIn gives the identity of the first transaction of a file if it ends in front of the cut.
func (d *database) firstIn(ctx context.Context, file string, cut gtid.Position) (gtid.Identity, error) {
	cfg := d.dump()
	cfg.Start = gtid.Point{Position: gtid.Position{File: file, Offset: 4}}
	cfg.Heartbeat = 200 * time.Millisecond
	cfg.Follow = func(string, string) bool { return false }
	stream, err := binlog.Open(ctx, cfg)
	if err != nil {
		return gtid.Identity{}, fmt.Errorf("looking for the first transaction of %s: %w", file, err)
	}
	defer func() { _ = stream.Close() }() // only read from
	for {
		tx, err := stream.Next(ctx)
		if err != nil {
			return gtid.Identity{}, err
		}
		id, progress, end := tx.Identity(), tx.Kind == binlog.Progress, tx.End
		if err := tx.Release(); err != nil {
			return gtid.Identity{}, err
		}
		switch {
		case !progress && end.Compare(cut) <= 0:
			return id, nil
		case !progress, end.File != file, end.Compare(cut) >= 0:
			return gtid.Identity{}, nil
		case end.Offset > 4: // idle: the file has nothing
			return gtid.Identity{}, nil
		}
	}
}
