package replica

import (
	"context"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
)

// queue holds transactions between the connection and the commits, so that the source can send while rows are written. It
// is bounded by bytes; a transaction larger than the bound goes in alone.
type queue struct {
	limit int64

	mu    sync.Mutex
	txs   []*binlog.Transaction
	bytes int64
	err   error         // why nothing more comes
	moved chan struct{} // closed and made anew at every change
}

// perTransaction is the memory that a transaction takes besides its events.
const perTransaction = 512

func newQueue(limit int64) *queue { return &queue{limit: limit, moved: make(chan struct{})} }

// memoryOf is about what a transaction holds in memory.
func memoryOf(tx *binlog.Transaction) int64 {
	if tx.Spilled() {
		return perTransaction
	}
	return tx.Size() + perTransaction
}

// signal tells everybody who waits that something changed; mu is held.
func (q *queue) signal() {
	close(q.moved)
	q.moved = make(chan struct{})
}

// push waits for room. It is false when the queue was closed meanwhile.
func (q *queue) push(ctx context.Context, tx *binlog.Transaction) bool {
	size := memoryOf(tx)
	for {
		q.mu.Lock()
		if q.err != nil {
			q.mu.Unlock()
			return false
		}
		if len(q.txs) == 0 || q.bytes+size <= q.limit {
			q.txs = append(q.txs, tx)
			q.bytes += size
			q.signal()
			q.mu.Unlock()
			return true
		}
		moved := q.moved
		q.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// close says that nothing more comes, and why. What is queued can still be taken.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
		q.signal()
	}
}

// pop takes the next transaction, waiting until deadline (zero: for ever). It gives nil at the deadline, and the error of
// close when nothing is left.
func (q *queue) pop(ctx context.Context, deadline time.Time) (*binlog.Transaction, error) {
	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		expired = timer.C
	}
	for {
		q.mu.Lock()
		if len(q.txs) > 0 {
			tx := q.txs[0]
			q.txs[0] = nil
			q.txs = q.txs[1:]
			q.bytes -= memoryOf(tx)
			q.signal()
			q.mu.Unlock()
			return tx, nil
		}
		err, moved := q.err, q.moved
		q.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-moved:
		case <-expired:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// empty tells whether nothing waits.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.txs) == 0
}

// drain releases what is left.
func (q *queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, tx := range q.txs {
		_ = tx.Release() // nobody will read it
	}
	q.txs, q.bytes = nil, 0
}
