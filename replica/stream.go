package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/storage"
)

// Bounds of what waits between the connection and the commit, and of a batch when the stream lags. Two batches are in work
// at a time, one being decoded and one being committed. Rows take two to three times the memory of their bytes in the
// log; a batch of the 64 MiB that were planned at first reached the store in several pieces, which cost more there than
// the fewer commits saved.
const (
	queueBytes    = 64 << 20
	laggingBytes  = 24 << 20
	maxBatchCount = 1 << 16
)

// follow applies the source's binlog, as it is spooled, from the committed point on until an error.
func (d *database) follow(ctx context.Context, db storage.DatabaseInfo) error {
	source, err := d.known(ctx)
	if err != nil {
		return err
	}
	state, ids, _, err := loadState(d.m.store, db)
	if err != nil {
		return err
	}
	if err := d.puller.cover(state.Point); err != nil {
		return err
	}
	if err := d.puller.verified(ctx); err != nil {
		return err
	}
	d.prune(state.Point) // a relay that is full goes on when it has nothing left to apply
	reader, err := d.puller.relay.Read(state.Point, relay.ReadConfig{Follow: d.follows(source)})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }() // only read from
	names := &rows{store: d.m.store, db: d.id, ids: ids}
	r := replay.New(d.replayConfig(source), names, state)
	d.gate.follow(r, names)
	defer d.gate.follow(nil, nil)
	return d.reread(d.pump(ctx, reader, r), r.State().Point)
}

// reread decides about a relay that can't be read on from where it was.
func (d *database) reread(err error, at gtid.Point) error {
	var damage *relay.DamageError
	var gone *relay.GoneError
	switch {
	case errors.As(err, &damage):
		return errors.Join(err, d.puller.renew(at, damage))
	case errors.As(err, &gone):
		return errors.Join(errRestart, err)
	}
	return err
}

func (d *database) replayConfig(source *compat.Source) replay.Config {
	return replay.Config{Database: d.spec().SourceDatabase, Filter: d.wanted, Server: serverOf(source), ByPosition: d.byPosition(), XAUnknown: d.xaUnknown(), Quarantined: d.quarantined}
}

// xaUnknown tells that the account could not ask for prepared XA transactions when the first copy began.
func (d *database) xaUnknown() bool {
	record := d.config().Copy
	return record != nil && record.XAUnknown
}

// probe asks the server what it is.
func (d *database) probe(ctx context.Context) (*compat.Source, error) {
	c, source, err := compat.Dial(ctx, d.wire())
	if err != nil {
		return nil, err
	}
	return source, c.Close()
}

// serverOf gives what DDL depends on.
func serverOf(s *compat.Source) ddl.Server {
	return ddl.Server{Version: s.VersionNumber(), FoldNames: s.LowerCaseTableNames > 0, LowerNames: s.LowerCaseTableNames == 1,
		NativeForeignKeys: s.NativeForeignKeys, Location: systemZone(s.SystemTimeZone)}
}

// zoneOf gives the time zone in which the source's sessions see TIMESTAMP by default: a name or an offset.
func zoneOf(s *compat.Source) string {
	if s.TimeZone != "" && !strings.EqualFold(s.TimeZone, "SYSTEM") {
		return s.TimeZone
	}
	if loc := systemZone(s.SystemTimeZone); loc != nil {
		return loc.String()
	}
	minutes := int(s.UTCOffset.Minutes())
	sign := "+"
	if minutes < 0 {
		sign, minutes = "-", -minutes
	}
	return fmt.Sprintf("%s%02d:%02d", sign, minutes/60, minutes%60)
}

// systemZone gives the time zone that a server calls SYSTEM. Abbreviations such as CST or EST stand for several zones, or
// for half of the year, so they are not known here.
func systemZone(name string) *time.Location {
	if name == "UTC" || name == "GMT" {
		return time.UTC
	}
	if !strings.Contains(name, "/") {
		return nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return loc
}

func (d *database) streamConfig(source *compat.Source, state replay.State) binlog.Config {
	cfg := d.dump()
	cfg.AutoPosition, cfg.Start, cfg.Follow = !d.byPosition(), state.Point, d.follows(source)
	if cfg.AutoPosition && !state.Last.IsZero() && state.Last.Source != source.UUID {
		cfg.Start.Position = gtid.Position{} // of another server
	}
	return cfg
}

// follows tells the rows of wanted tables from others.
func (d *database) follows(source *compat.Source) func(database, table string) bool {
	name, fold := d.spec().SourceDatabase, source.LowerCaseTableNames > 0
	known := map[string]bool{}
	return func(database, table string) bool {
		if database != name && !(fold && strings.EqualFold(database, name)) {
			return false
		}
		wanted, ok := known[table]
		if !ok {
			wanted = d.wanted(table)
			known[table] = wanted
		}
		return wanted
	}
}

// verifyLast makes sure that the source still has what was read from it. A last transaction that was purged proves
// nothing either way; what comes behind it is checked when the stream is opened.
func (d *database) verifyLast(ctx context.Context, cfg binlog.Config, last gtid.Identity) error {
	err := binlog.VerifyLast(ctx, cfg, last)
	if binlog.ClassOf(err) == binlog.UnknownIdentity {
		d.log.Warn("the last transaction that was read can't be compared with the source", "reason", err)
		return nil
	}
	return err
}

// pump carries transactions from the relay to commits. The relay is read beside them.
func (d *database) pump(ctx context.Context, reader *relay.Reader, r *replay.Replayer) error {
	ctx, cancel := context.WithCancel(ctx)
	q := newQueue(queueBytes)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.close(d.puller.read(ctx, reader, q))
	}()
	defer func() {
		cancel()
		<-ended
		q.drain()
	}()
	b := batcher{d: d, q: q, r: r}
	for {
		if err := b.next(ctx); err != nil {
			return errors.Join(err, d.gate.settle(context.WithoutCancel(ctx), r))
		}
	}
}

// read fills the queue until the relay can't be read on, or until it has been read to its end and nothing more will be
// pulled. Whatever a source that was rewound had is not applied any more.
func (p *puller) read(ctx context.Context, reader *relay.Reader, q *queue) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	failure := p.failure()
	go func() {
		select {
		case <-failure:
			stop() // the reader gives what there is, and does not wait for more
		case <-reading.Done():
		}
	}()
	for {
		tx, err := reader.Next(reading)
		cause := p.cause()
		switch {
		case tx != nil && binlog.ClassOf(cause) == binlog.Rewound:
			return errors.Join(cause, tx.Release())
		case err == nil && q.push(ctx, tx):
		case err == nil:
			return errors.Join(context.Cause(ctx), tx.Release())
		case ctx.Err() == nil && binlog.ClassOf(err) == binlog.Cancelled && cause != nil:
			return cause
		case err == io.EOF:
			return errEnded
		default:
			return err
		}
	}
}

// batcher decides which transactions share a commit.
type batcher struct {
	d *database
	q *queue
	r *replay.Replayer
	// last is when the last batch was closed; the next one waits for more until a while has passed since (pause).
	last time.Time
	// begun counts the batches.
	begun atomic.Int64
	// took is how long the last commit took, decoding included, in nanoseconds.
	took atomic.Int64
}

// next takes one batch and begins its commit, beside which the next one is collected and decoded. When the stream has
// ended, what came before its end is committed first.
func (b *batcher) next(ctx context.Context) error {
	if err := b.converge(ctx); err != nil {
		return err
	}
	if b.q.empty() { // nothing to decode meanwhile; an error of the commit shall be known at once
		if err := b.d.gate.settle(ctx, b.r); err != nil {
			return err
		}
	}
	first, err := b.q.pop(ctx, time.Time{})
	if err != nil {
		return err
	}
	number := b.begun.Add(1)
	txs, err := b.collect(ctx, first)
	defer func() {
		for _, tx := range txs {
			_ = tx.Release() // the commit holds what counts
		}
	}()
	if err != nil {
		return err
	}
	if err := b.d.gate.enter(ctx); err != nil {
		return err
	}
	defer b.d.gate.leave()
	start, before, at, count := time.Now(), b.r.State().Point, pointTime(txs[len(txs)-1]), transactions(txs)
	return b.r.Start(ctx, txs, func(s replay.State) {
		b.took.Store(int64(time.Since(start)))
		idle := b.q.empty() && b.begun.Load() == number && b.d.puller.relay.Consumed(s.Point)
		b.d.applied(at, count, !before.Equal(s.Point), idle)
		b.d.prune(s.Point)
	})
}

// converge looks whether all tables of the first copy stand at one point by now.
func (b *batcher) converge(ctx context.Context) error {
	if !b.d.isConverging() {
		return nil
	}
	if err := b.d.gate.enter(ctx); err != nil {
		return err
	}
	defer b.d.gate.leave()
	return b.d.becomeReadable(ctx, b.r)
}

const (
	// commitShare is the part of the time that goes into commits while the stream keeps up: 1 in so many.
	commitShare = 4
	minPause    = 10 * time.Millisecond
)

// pause is how long a batch may stay open after the one before. A commit costs much the same for one transaction as for a
// hundred, so that each waits for more: not longer than max_flush_data_time, and not longer than commits are worth.
func (b *batcher) pause(most time.Duration) time.Duration {
	return min(most, max(minPause, commitShare*time.Duration(b.took.Load())))
}

// collect adds transactions until a limit is reached. A lone transaction on a quiet stream is not kept waiting.
func (b *batcher) collect(ctx context.Context, first *binlog.Transaction) ([]*binlog.Transaction, error) {
	set := b.d.spec().Settings
	limit := limits{rows: min(set.MaxRowsInBuffer, set.MaxRowsInBuffers), bytes: min(set.MaxBytesInBuffer, set.MaxBytesInBuffers)}
	txs := []*binlog.Transaction{first}
	limit.take(first)
	deadline := b.last.Add(b.pause(set.MaxFlushDataTime))
	for len(txs) < maxBatchCount {
		if limit.reached() && (b.q.empty() || limit.usedBytes >= laggingBytes) {
			break
		}
		tx, err := b.q.pop(ctx, deadline)
		if err != nil && ctx.Err() != nil {
			return txs, err
		}
		if tx == nil { // the time is up, or the stream has ended
			break
		}
		txs = append(txs, tx)
		limit.take(tx)
	}
	b.last = time.Now()
	return txs, nil
}

// limits count what a batch holds. Events stand for rows: their number in an event is known only after decoding.
type limits struct {
	rows, bytes         int64
	usedRows, usedBytes int64
}

func (l *limits) take(tx *binlog.Transaction) {
	l.usedRows += int64(tx.RowEvents)
	l.usedBytes += tx.Size()
}

func (l *limits) reached() bool { return l.usedRows >= l.rows || l.usedBytes >= l.bytes }

// transactions counts those of a batch, signs of life left out.
func transactions(txs []*binlog.Transaction) (n int) {
	for _, tx := range txs {
		if tx.Kind != binlog.Progress {
			n++
		}
	}
	return n
}

// pointTime is when the source committed the last transaction of a batch.
func pointTime(tx *binlog.Transaction) time.Time {
	switch {
	case tx.ImmediateCommit > 0:
		return time.UnixMicro(int64(tx.ImmediateCommit))
	case tx.Timestamp > 0:
		return time.Unix(int64(tx.Timestamp), 0)
	}
	return time.Time{}
}

func (d *database) quarantined(q replay.Quarantine) {
	d.log.Error("a table was put into quarantine", "table", q.Table, "reason", q.Reason)
}
