package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/integration/shop"
)

// trade lets customers in and asks both sides the same question, again and again: for the times while the customers
// go on, for the answers at a moment when they hold still, since only then both sides stand at one point.
func (s *stage) trade(ctx context.Context) error {
	s.title(fmt.Sprintf("%d writers on the source, one question to both sides", s.traders))
	s.line("%s\n", strings.ReplaceAll(shop.Revenue, "\n", "\n   "))
	m := newMarket(s.sourceDB, s.size, s.traders)
	m.open(ctx)
	rounds := s.askRounds(ctx, m)
	return errors.Join(rounds, m.close())
}

func (s *stage) askRounds(ctx context.Context, m *market) error {
	s.line("%8s %8s %10s %10s  %-8s %s", "changes", "lag", "MySQL", "Tidemark", "answers", "both at")
	for end := time.Now().Add(s.trading); time.Now().Before(end); {
		if err := s.askRound(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) askRound(ctx context.Context, m *market) error {
	if err := sleep(ctx, 700*time.Millisecond); err != nil {
		return err
	}
	lagging, err := s.tide.status(ctx, database)
	if err != nil {
		return err
	}
	mysql, err := ask(ctx, s.sourceDB, shop.Revenue)
	if err != nil {
		return err
	}
	tide, err := ask(ctx, s.tideDB, shop.Revenue)
	if err != nil {
		return err
	}
	m.hold()
	defer m.release()
	point, err := s.compare(ctx)
	if err != nil {
		return err
	}
	s.line("%8s %8s %10s %10s  %-8s %s", thousands(int(m.made())), lagging.lag(), milliseconds(mysql.took), milliseconds(tide.took), "equal", short(point))
	return m.failed()
}

// compare waits until Tidemark has all that the source has, and asks both for the revenue and for the sum that every
// transaction keeps. The writers stand still meanwhile.
func (s *stage) compare(ctx context.Context) (point string, err error) {
	want, err := sourcePoint(ctx, s.sourceDB)
	if err != nil {
		return "", err
	}
	for {
		now, err := s.tide.status(ctx, database)
		if err != nil {
			return "", err
		}
		reached, err := want.reachedBy(ctx, s.sourceDB, now)
		if err != nil {
			return "", err
		}
		if reached {
			point = now.point()
			break
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return "", err
		}
	}
	for _, query := range []string{shop.Revenue, shop.Pieces} {
		mysql, err := ask(ctx, s.sourceDB, query)
		if err != nil {
			return "", err
		}
		tide, err := ask(ctx, s.tideDB, query)
		if err != nil {
			return "", err
		}
		if mysql.text != tide.text {
			return "", fmt.Errorf("at %s the answers differ\nMySQL:\n%sTidemark:\n%s", point, mysql.text, tide.text)
		}
	}
	return point, nil
}

// answer is a result set as text, and how long it took from the question to the last row.
type answer struct {
	text string
	took time.Duration
}

func ask(ctx context.Context, db *sql.DB, query string) (answer, error) {
	begun := time.Now()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return answer{}, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return answer{}, err
	}
	values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	var text strings.Builder
	text.WriteString(strings.Join(columns, "\t") + "\n")
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return answer{}, err
		}
		for _, v := range values {
			fmt.Fprintf(&text, "%q %t\t", v.String, v.Valid)
		}
		text.WriteByte('\n')
	}
	return answer{text: text.String(), took: time.Since(begun)}, rows.Err()
}

// point is where a source stands.
type point struct {
	gtids    string
	file     string
	position uint64
}

func sourcePoint(ctx context.Context, db *sql.DB) (point, error) {
	var p point
	var mode string
	if err := db.QueryRowContext(ctx, "SELECT @@gtid_mode, @@gtid_executed").Scan(&mode, &p.gtids); err != nil {
		return p, err
	}
	if mode == "ON" {
		return p, nil
	}
	p.gtids = ""
	var unused sql.NullString
	err := db.QueryRowContext(ctx, "SHOW BINARY LOG STATUS").Scan(&p.file, &p.position, &unused, &unused, &unused)
	return p, err
}

func (p point) reachedBy(ctx context.Context, db *sql.DB, s status) (reached bool, err error) {
	if p.gtids == "" {
		return s.File > p.file || s.File == p.file && s.Position >= p.position, nil
	}
	err = db.QueryRowContext(ctx, "SELECT GTID_SUBSET(?, ?)", p.gtids, s.GTIDSet).Scan(&reached)
	return reached, err
}

// market lets several traders work, and can make all of them hold still between two transactions.
type market struct {
	traders []*shop.Trader
	gate    sync.RWMutex // a trader holds it for reading while it makes a transaction
	stop    context.CancelFunc
	work    sync.WaitGroup
	mu      sync.Mutex
	err     error
}

func newMarket(db *sql.DB, size shop.Size, traders int) *market {
	m := &market{}
	for number := range traders {
		m.traders = append(m.traders, shop.NewTrader(db, size, number, 1))
	}
	return m
}

func (m *market) open(ctx context.Context) {
	ctx, m.stop = context.WithCancel(ctx)
	for _, t := range m.traders {
		m.work.Go(func() {
			for ctx.Err() == nil {
				if err := m.trade(ctx, t); err != nil && ctx.Err() == nil {
					m.fail(err)
					return
				}
			}
		})
	}
}

func (m *market) trade(ctx context.Context, t *shop.Trader) error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	return t.Trade(ctx)
}

func (m *market) hold()    { m.gate.Lock() }
func (m *market) release() { m.gate.Unlock() }

func (m *market) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = errors.Join(m.err, err)
}

func (m *market) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *market) made() (n int64) {
	for _, t := range m.traders {
		n += t.Made()
	}
	return n
}

// close sends the traders home.
func (m *market) close() error {
	m.stop()
	m.work.Wait()
	return m.failed()
}
