package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

const (
	oltpRows    = 200_000
	oltpClients = 8
)

// bulk measures the replay of bulk inserts: Tidemark and a MySQL replica are stopped, the source is filled, and both are
// let go one after the other.
func (b *bench) bulk(ctx context.Context) error {
	if err := b.emptyLines(ctx, "bulk"); err != nil {
		return err
	}
	r, err := b.replay(ctx, "bulk", func(db *sql.DB) error { return loadLines(ctx, db, b.rows) })
	if err != nil {
		return err
	}
	rows := float64(b.rows)
	b.report.line("replay of bulk inserts: speed against a MySQL replica", ratio(r.replica.Seconds(), r.tidemark.Seconds()),
		fmt.Sprintf("%.0f k rows/s, replica %.0f k rows/s", rows/r.tidemark.Seconds()/1e3, rows/r.replica.Seconds()/1e3), ">= 5 x")
	b.report.line("  time against pulling the log with mysqlbinlog --raw", ratio(r.tidemark.Seconds(), r.pull.Seconds()),
		fmt.Sprintf("%.2f s (processor %.2f s), mysqlbinlog %.2f s", r.tidemark.Seconds(), r.processor.Seconds(), r.pull.Seconds()), "")
	return nil
}

// oltp measures the replay of a mix of small transactions like that of sysbench oltp_write_only: two updates, a delete
// and an insert of the same key.
func (b *bench) oltp(ctx context.Context) error {
	if err := b.prepareOLTP(ctx); err != nil {
		return err
	}
	r, err := b.replay(ctx, "oltp", func(db *sql.DB) error { return runOLTP(ctx, db, b.transactions) })
	if err != nil {
		return err
	}
	events := float64(b.transactions * 4)
	b.report.line("replay of an OLTP mix: speed against a MySQL replica", ratio(r.replica.Seconds(), r.tidemark.Seconds()),
		fmt.Sprintf("%.0f k row events/s, replica %.0f k/s", events/r.tidemark.Seconds()/1e3, events/r.replica.Seconds()/1e3), ">= 8 x")
	b.report.line("  time against pulling the log with mysqlbinlog --raw", ratio(r.tidemark.Seconds(), r.pull.Seconds()),
		fmt.Sprintf("%.2f s (processor %.2f s), mysqlbinlog %.2f s", r.tidemark.Seconds(), r.processor.Seconds(), r.pull.Seconds()), "")
	return nil
}

// replayTimes are those of the two sides and of mysqlbinlog; processor is what Tidemark's process used.
type replayTimes struct{ tidemark, replica, pull, processor time.Duration }

func (b *bench) replay(ctx context.Context, database string, load func(*sql.DB) error) (times replayTimes, err error) {
	source, err := b.source.Open(database)
	if err != nil {
		return times, err
	}
	defer func() { _ = source.Close() }()
	if err := b.tidemark.create(ctx, b.source, database); err != nil {
		return times, err
	}
	replica, err := b.startReplica(ctx, source, database)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, replica.close()) }()
	if err := b.tidemark.exec(ctx, "SYSTEM STOP MATERIALIZEDMYSQL "+database); err != nil {
		return times, err
	}
	var file string
	if _, err := source.ExecContext(ctx, "FLUSH BINARY LOGS"); err != nil {
		return times, err
	}
	if err := source.QueryRowContext(ctx, "SELECT FILE FROM performance_schema.log_status, JSON_TABLE(LOCAL, '$' COLUMNS (FILE VARCHAR(200) PATH '$.binary_log_file')) j").Scan(&file); err != nil {
		return times, err
	}
	if err := load(source); err != nil {
		return times, err
	}
	if times.pull, err = b.pull(ctx, file); err != nil {
		return times, err
	}
	if times.replica, err = replica.catchUp(ctx, source); err != nil {
		return times, err
	}
	before, err := b.tidemark.processorTime()
	if err != nil {
		return times, err
	}
	start := time.Now()
	if err := b.tidemark.exec(ctx, "SYSTEM START MATERIALIZEDMYSQL "+database); err != nil {
		return times, err
	}
	if err := b.tidemark.caughtUp(ctx, source, database); err != nil {
		return times, err
	}
	times.tidemark = time.Since(start)
	after, err := b.tidemark.processorTime()
	times.processor = after - before
	return times, err
}

// pull times mysqlbinlog --raw of everything from a file on.
func (b *bench) pull(ctx context.Context, file string) (time.Duration, error) {
	program, err := mysqltest.Program(ctx, "mysqlbinlog")
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "tidemark-bench-binlog-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pull := exec.CommandContext(ctx, program, "--read-from-remote-server", "--raw", "--to-last-log", "--host="+b.source.Host, fmt.Sprintf("--port=%d", b.source.Port),
		"--user="+b.source.User, "--password="+b.source.Password, "--result-file="+dir+"/", file)
	start := time.Now()
	if out, err := pull.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("mysqlbinlog: %w: %s", err, out)
	}
	return time.Since(start), nil
}

// replica is a MySQL replica of the source, stopped, that has everything up to its creation. It is as durable as MySQL is
// by default and as Tidemark is: every commit is synced.
type replica struct {
	server *mysqltest.Server
	db     *sql.DB
}

func (b *bench) startReplica(ctx context.Context, source *sql.DB, database string) (*replica, error) {
	server, err := mysqltest.StartServer(ctx, mysqltest.Options{Own: true, Durable: true, Args: []string{
		"--server-id=2", "--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=1G", "--replicate-do-db=" + database,
	}})
	if err != nil {
		return nil, err
	}
	r := &replica{server: server}
	if r.db, err = server.Open(""); err != nil {
		return nil, errors.Join(err, r.close())
	}
	for _, statement := range []string{
		"RESET BINARY LOGS AND GTIDS",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
			b.source.Host, b.source.Port, b.source.User, b.source.Password),
	} {
		if _, err := r.db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	if _, err := r.catchUp(ctx, source); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// catchUp lets the replica go until it has all the source has, stops it, and tells how long that took.
func (r *replica) catchUp(ctx context.Context, source *sql.DB) (time.Duration, error) {
	var goal string
	if err := source.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&goal); err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := r.db.ExecContext(ctx, "START REPLICA"); err != nil {
		return 0, err
	}
	if err := r.await(ctx, goal); err != nil {
		return 0, err
	}
	took := time.Since(start)
	_, err := r.db.ExecContext(ctx, "STOP REPLICA")
	return took, err
}

// await waits until the replica has executed a GTID set, and gives its error when it has stopped.
func (r *replica) await(ctx context.Context, goal string) error {
	for {
		var late int
		if err := r.db.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 10)", goal).Scan(&late); err != nil || late == 0 {
			return err
		}
		var fault string
		if err := r.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(LAST_ERROR_MESSAGE), '') FROM performance_schema.replication_applier_status_by_worker").Scan(&fault); err != nil {
			return err
		}
		if fault != "" {
			return fmt.Errorf("the MySQL replica stopped: %s", fault)
		}
	}
}

func (r *replica) close() error {
	if r.db != nil {
		_ = r.db.Close()
	}
	return r.server.Close()
}

func (b *bench) prepareOLTP(ctx context.Context) error {
	if err := b.createDatabase(ctx, "oltp"); err != nil {
		return err
	}
	db, err := b.source.Open("oltp")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{
		"CREATE TABLE sbtest (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))",
		fmt.Sprintf(`INSERT INTO sbtest WITH RECURSIVE n (id) AS (SELECT /*+ SET_VAR(cte_max_recursion_depth=10000000) */ 1 UNION ALL SELECT id + 1 FROM n WHERE id < %d)
			SELECT id, id * 7 %% %d, LEFT(REPEAT(SHA2(id, 256), 2), 120), LEFT(SHA2(id + 1, 256), 60) FROM n`, oltpRows, oltpRows),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func runOLTP(ctx context.Context, db *sql.DB, transactions int) error {
	g, ctx := errgroup.WithContext(ctx)
	db.SetMaxIdleConns(oltpClients)
	for client := range oltpClients {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(client), 1))
			for n := client; n < transactions; n += oltpClients {
				if err := oltpTransaction(ctx, db, random); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// oltpTransaction tries again after a deadlock, as any client does.
func oltpTransaction(ctx context.Context, db *sql.DB, random *rand.Rand) error {
	a, b, c := 1+random.IntN(oltpRows), 1+random.IntN(oltpRows), 1+random.IntN(oltpRows)
	for {
		err := tryOLTP(ctx, db, a, b, c, random.IntN(1<<30))
		if err == nil || !isDeadlock(err) {
			return err
		}
	}
}

func tryOLTP(ctx context.Context, db *sql.DB, a, b, c, value int) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf("UPDATE sbtest SET k = k + 1 WHERE id = %d", a),
		fmt.Sprintf("UPDATE sbtest SET c = '%0120d' WHERE id = %d", value, b),
		fmt.Sprintf("DELETE FROM sbtest WHERE id = %d", c),
		fmt.Sprintf("INSERT INTO sbtest VALUES (%d, %d, '%0120d', '%060d')", c, value, value, value),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
