package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemarkdb/tidemark/replica"
	"github.com/tidemarkdb/tidemark/server"
	"github.com/tidemarkdb/tidemark/storage"
)

// The metrics. docs/metrics.md lists them. No label takes values of the data, and tables have series of their own only while
// they are in quarantine, so that a database of ten thousand tables does not make as many.
var (
	metricState     = ofDatabase("database_state", "1 for the state that the database is in, 0 for the others.", "state")
	metricFailing   = ofDatabase("database_failing", "1 while the database has an error, which passes by itself or does not.")
	metricLag       = ofDatabase("lag_seconds", "How far queries are behind the source; absent when not known.")
	metricPoint     = ofDatabase("position_timestamp_seconds", "When the source committed what queries see, or when that was last all there is.")
	metricApplied   = ofDatabase("rows_applied_total", "Row changes applied, since the first copy.")
	metricTx        = ofDatabase("transactions_applied_total", "Transactions of the source applied, since the server started.")
	metricRelay     = ofDatabase("relay_bytes", "The source's log that is spooled here.")
	metricRelayFull = ofDatabase("relay_full", "1 while nothing is read from the source, since relay_max_bytes are spooled.")
	metricKept      = ofDatabase("source_binlog_seconds_left", "For how long the source still has the binlog that is needed next; absent when not known, and when it removes nothing.")
	metricTight     = ofDatabase("source_binlog_warning", "1 when the source is about to remove binlog that is still needed, or has.")
	metricTables    = ofDatabase("tables", "Tables by state.", "state")
	metricRows      = ofDatabase("rows", "Rows of all tables.")
	metricQuar      = ofDatabase("table_quarantined", "1 for a table in quarantine; the first hundred of a database.", "table")
	metricResync    = ofDatabase("resyncs", "New copies of tables that are made beside the stream, or wait for it.")
	metricCopied    = ofDatabase("copy_rows", "Rows of the first copy that are here; absent when none is under way.")
	metricToCopy    = ofDatabase("copy_estimated_rows", "Rows that the first copy will have, as the source estimates.")
	metricCopyBytes = ofDatabase("copy_bytes", "Bytes of the first copy that came over the network.")
	metricCopyDone  = ofDatabase("copy_tables_done", "Tables of the first copy that are complete.")

	metricClients  = ofServer("clients", "Clients connected.")
	metricQueries  = ofServer("statements_total", "Statements run.")
	metricParts    = ofServer("store_part_bytes", "Files of rows, those that will go not counted.")
	metricMeta     = ofServer("store_meta_bytes", "Files of the catalog and the key index.")
	metricFresh    = ofServer("store_fresh_bytes", "Memory of the rows that are not in files of their own yet.")
	metricDamaged  = ofServer("store_damaged_tables", "Tables whose files can't be read.")
	metricStoreBad = ofServer("store_failed", "1 when the store takes no more commits until the server is started again.")
)

func ofDatabase(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tidemark_"+name, help, append([]string{"database"}, labels...), nil)
}

func ofServer(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tidemark_"+name, help, nil, nil)
}

// maxQuarantined bounds the series of tables in quarantine.
const maxQuarantined = 100

// collector turns the status into metrics when they are asked for.
type collector struct {
	store   *storage.Store
	manager server.Manager
	server  *server.Server
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	clients, statements := c.server.Load()
	usage := c.store.Usage()
	out.gauge(metricClients, float64(clients))
	out.counter(metricQueries, float64(statements))
	out.gauge(metricParts, float64(usage.PartBytes))
	out.gauge(metricMeta, float64(usage.MetaBytes))
	out.gauge(metricFresh, float64(usage.SegmentBytes))
	out.gauge(metricDamaged, float64(usage.Damaged))
	out.gauge(metricStoreBad, truth(c.store.Failed() != nil))
	for _, st := range c.manager.Status() {
		out.database(&st)
	}
}

// sink takes metrics.
type sink struct{ ch chan<- prometheus.Metric }

func (s sink) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s sink) counter(d *prometheus.Desc, value float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func (s sink) database(st *replica.Status) {
	for _, state := range replica.States {
		s.gauge(metricState, truth(st.State == state), st.Name, string(state))
	}
	s.gauge(metricFailing, truth(st.Error != nil), st.Name)
	s.counter(metricApplied, float64(st.RowsApplied), st.Name)
	s.counter(metricTx, float64(st.Transactions), st.Name)
	if st.LagSeconds != nil {
		s.gauge(metricLag, *st.LagSeconds, st.Name)
	}
	if !st.PointTime.IsZero() {
		s.gauge(metricPoint, float64(st.PointTime.UnixMilli())/1000, st.Name)
	}
	if r := st.Relay; r != nil {
		s.gauge(metricRelay, float64(r.Bytes), st.Name)
		s.gauge(metricRelayFull, truth(r.Full), st.Name)
	}
	if r := st.Retention; r != nil {
		s.gauge(metricTight, truth(r.Warning != nil), st.Name)
		if r.HoursLeft != nil {
			s.gauge(metricKept, *r.HoursLeft*time.Hour.Seconds(), st.Name)
		}
	}
	if c := st.Copy; c != nil {
		s.gauge(metricCopied, float64(c.Rows), st.Name)
		s.gauge(metricToCopy, float64(c.TotalRows), st.Name)
		s.gauge(metricCopyBytes, float64(c.Bytes), st.Name)
		s.gauge(metricCopyDone, float64(c.Tables), st.Name)
	}
	s.tables(st)
}

func (s sink) tables(st *replica.Status) {
	byState := map[string]int{"copying": 0, "live": 0, "quarantined": 0}
	var rows int64
	resyncs, quarantined := 0, 0
	for _, t := range st.Tables {
		byState[t.State]++
		rows += t.Rows
		if t.Resync != nil {
			resyncs++
		}
		if t.State == "quarantined" && quarantined < maxQuarantined {
			quarantined++
			s.gauge(metricQuar, 1, st.Name, t.Name)
		}
	}
	for state, n := range byState {
		s.gauge(metricTables, float64(n), st.Name, state)
	}
	s.gauge(metricRows, float64(rows), st.Name)
	s.gauge(metricResync, float64(resyncs), st.Name)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// startMetrics serves /metrics and /healthz on an address; empty: not at all.
func startMetrics(address string, store *storage.Store, manager server.Manager, srv *server.Server) (io.Closer, error) {
	if address == "" {
		return noMetrics{}, nil
	}
	l, err := listen("--metrics-addr", address)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{store, manager, srv}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := store.Failed(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.Serve(l) }()
	return h, nil
}

// noMetrics stands for the server that was not asked for.
type noMetrics struct{}

func (noMetrics) Close() error { return nil }
