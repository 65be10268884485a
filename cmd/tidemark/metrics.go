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

// The metrics, each with the database it is about.
var (
	metricState   = prometheus.NewDesc("tidemark_database_state", "1 for the state the database is in.", []string{"database", "state"}, nil)
	metricLag     = prometheus.NewDesc("tidemark_lag_seconds", "How far queries are behind the source; absent when not known.", []string{"database"}, nil)
	metricApplied = prometheus.NewDesc("tidemark_rows_applied_total", "Row changes applied.", []string{"database"}, nil)
	metricFailing = prometheus.NewDesc("tidemark_database_failing", "1 when the database has an error.", []string{"database"}, nil)
	metricKept    = prometheus.NewDesc("tidemark_source_binlog_seconds_left", "For how long the source still has the binlog that is needed next; absent when not known, and when it removes nothing.", []string{"database"}, nil)
	metricTight   = prometheus.NewDesc("tidemark_source_binlog_warning", "1 when the source is about to remove binlog that is still needed, or has.", []string{"database"}, nil)
	metricRows    = prometheus.NewDesc("tidemark_table_rows", "Rows of a table.", []string{"database", "table"}, nil)
	metricQuar    = prometheus.NewDesc("tidemark_table_quarantined", "1 when the table is in quarantine.", []string{"database", "table"}, nil)
	metricClients = prometheus.NewDesc("tidemark_clients", "Clients connected.", nil, nil)
	metricQueries = prometheus.NewDesc("tidemark_statements_total", "Statements run.", nil, nil)
)

// collector turns the status into metrics when they are asked for.
type collector struct {
	manager server.Manager
	server  *server.Server
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	clients, statements := c.server.Load()
	ch <- prometheus.MustNewConstMetric(metricClients, prometheus.GaugeValue, float64(clients))
	ch <- prometheus.MustNewConstMetric(metricQueries, prometheus.CounterValue, float64(statements))
	for _, st := range c.manager.Status() {
		collectDatabase(ch, &st)
	}
}

func collectDatabase(ch chan<- prometheus.Metric, st *replica.Status) {
	ch <- prometheus.MustNewConstMetric(metricState, prometheus.GaugeValue, 1, st.Name, string(st.State))
	ch <- prometheus.MustNewConstMetric(metricApplied, prometheus.CounterValue, float64(st.RowsApplied), st.Name)
	ch <- prometheus.MustNewConstMetric(metricFailing, prometheus.GaugeValue, truth(st.Error != nil), st.Name)
	if st.LagSeconds != nil {
		ch <- prometheus.MustNewConstMetric(metricLag, prometheus.GaugeValue, *st.LagSeconds, st.Name)
	}
	if r := st.Retention; r != nil {
		ch <- prometheus.MustNewConstMetric(metricTight, prometheus.GaugeValue, truth(r.Warning != nil), st.Name)
		if r.HoursLeft != nil {
			ch <- prometheus.MustNewConstMetric(metricKept, prometheus.GaugeValue, *r.HoursLeft*3600, st.Name)
		}
	}
	for _, t := range st.Tables {
		ch <- prometheus.MustNewConstMetric(metricRows, prometheus.GaugeValue, float64(t.Rows), st.Name, t.Name)
		ch <- prometheus.MustNewConstMetric(metricQuar, prometheus.GaugeValue, truth(t.Error != nil), st.Name, t.Name)
	}
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
	registry.MustRegister(&collector{manager, srv}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
