package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Event is an entry of the event log: what happened to a database or a table, for people.
type Event struct {
	ID       uint64 `json:"-"` // ascending; set when the entry is written
	Time     time.Time
	Database string `json:",omitempty"`
	Table    string `json:",omitempty"`
	// Kind is a short word for programs, such as "quarantine"; Message is a sentence.
	Kind    string
	Message string
}

// eventLog bounds the log: the entries first..last are there.
type eventLog struct {
	mu          sync.Mutex
	first, last uint64
}

// log adds an entry to the commit and drops the oldest beyond the bound. Numbers are not reused when the commit fails.
func (c *commitment) log(e Event) error {
	l := &c.s.events
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = c.s.opt.Now()
	}
	l.last++
	if err := c.putJSON(makeKey(kindEvent, l.last), e); err != nil {
		return err
	}
	if l.last-l.first >= uint64(c.s.opt.Events) {
		keep := l.last - uint64(c.s.opt.Events) + 1
		l.first = keep
		return c.batch.DeleteRange(makeKey(kindEvent, 0), makeKey(kindEvent, keep), nil)
	}
	return nil
}

// Log adds entries to the event log in a commit of their own.
func (s *Store) Log(ctx context.Context, events ...Event) error {
	_, err := s.commit(ctx, func(c *commitment) error {
		for _, e := range events {
			if err := c.log(e); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Events gives up to limit entries, newest first.
func (s *Store) Events(limit int) ([]Event, error) {
	var events []Event
	it, err := s.meta.NewIter(prefixOptions([]byte{kindEvent}))
	if err != nil {
		return nil, err
	}
	for ok := it.Last(); ok && len(events) < limit; ok = it.Prev() {
		var e Event
		id, err := keyNumbers(it.Key(), 1)
		if err == nil {
			err = unframeJSON(it.Key(), it.Value(), &e)
		}
		if err != nil {
			return nil, firstError(err, it.Close())
		}
		e.ID = id[0]
		events = append(events, e)
	}
	return events, it.Close()
}

// prefixOptions bounds an iterator to the keys with a prefix.
func prefixOptions(prefix []byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)}
}

// scanPrefix calls fn for each entry under a prefix, in key order. Key and value are valid during the call.
func scanPrefix(r pebble.Reader, prefix []byte, fn func(key, value []byte) error) error {
	it, err := r.NewIter(prefixOptions(prefix))
	if err != nil {
		return fmt.Errorf("reading metadata: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = fn(it.Key(), value)
		}
		if err != nil {
			return firstError(err, it.Close())
		}
	}
	return firstError(it.Error(), it.Close())
}
