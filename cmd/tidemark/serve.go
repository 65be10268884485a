package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/replica"
	"github.com/tidemarkdb/tidemark/server"
	"github.com/tidemarkdb/tidemark/storage"
)

const defaultAddress = "127.0.0.1:9306"

// stopGrace is how long running statements may go on after the first SIGTERM.
const stopGrace = 30 * time.Second

type serveOptions struct {
	data, mysqlAddr, passwordFile string
	metricsAddr, credentialsDir   string
	tlsCert, tlsKey               string
	memory                        byteSize
	threads, maxConnections       int
	logLevel, logFormat           string
}

func newServe() *cobra.Command {
	o := serveOptions{memory: gib}
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the server",
		Long: `Runs the server: it follows the databases that were set up with "sync start" (or CREATE DATABASE) and
answers SQL. Everything it keeps is in one directory, which one server at a time may have open.

User root may log in from this machine without a password. To listen on other addresses, give root a password:
a file with it (--mysql-password-file), or the variable ` + passwordVariable + `.

The first SIGTERM or SIGINT stops it cleanly: running statements may end within 30 s, nothing committed is
lost, and following goes on from there at the next start. A second one stops it at once, which loses nothing either.`,
		Example: `  tidemark serve --data /var/lib/tidemark
  tidemark serve --data ./data --mysql-addr 0.0.0.0:9306 --mysql-password-file /etc/tidemark/password
  tidemark serve --data ./data --memory 4GiB --metrics-addr 127.0.0.1:9307`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := o.logger(cmd)
			if err != nil {
				return err
			}
			return failed(serve(cmd.Context(), &o, logger))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *serveOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "", "data directory; created when it is missing (required)")
	f.StringVar(&o.mysqlAddr, "mysql-addr", defaultAddress, "address for MySQL clients")
	f.StringVar(&o.passwordFile, "mysql-password-file", "", "file with root's password (default: the variable "+passwordVariable+", else none)")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "address for /metrics (Prometheus) and /healthz; default: none")
	f.StringVar(&o.credentialsDir, "credentials-dir", "", "folder with the files (passwords, certificates, keys) and programs (that print a password) that settings of databases may name; default: they may name none")
	f.StringVar(&o.tlsCert, "tls-cert", "", "certificate for encrypted connections (PEM); default: one made at the start")
	f.StringVar(&o.tlsKey, "tls-key", "", "key of the certificate (PEM)")
	f.Var(&o.memory, "memory", "memory of the process, shared out among queries, cache, fresh rows and copies")
	f.IntVar(&o.threads, "threads", 0, "threads of queries; default: as many as there are processors")
	f.IntVar(&o.maxConnections, "max-connections", 0, "clients at one time (default 151)")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	_ = cmd.MarkFlagRequired("data")
}

func (o *serveOptions) logger(cmd *cobra.Command) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %s: there are debug, info, warn and error", o.logLevel)
	}
	ho := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), ho)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), ho)), nil
	}
	return nil, fmt.Errorf("--log-format %s: there are text and json", o.logFormat)
}

// serve runs the server until a signal stops it. What it opens it closes in the opposite order.
func serve(ctx context.Context, o *serveOptions, logger *slog.Logger) error {
	memory, err := splitMemory(int64(o.memory))
	if err != nil {
		return &exitError{exitUsage, err}
	}
	config, err := o.serverConfig()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	debug.SetMemoryLimit(memory.goLimit)
	// the ports first: nothing else is touched when one is taken
	listener, err := listen("--mysql-addr", o.mysqlAddr)
	if err != nil {
		return err
	}
	defer listener.Close()
	if o.data, err = filepath.Abs(o.data); err != nil {
		return err
	}
	if err := o.checkCredentials(); err != nil {
		return err
	}
	store, err := openStore(o.data, memory, logger)
	if err != nil {
		return err
	}
	err = serveStore(ctx, o, config, memory, store, listener, logger)
	return errors.Join(err, store.Close())
}

// checkCredentials looks whether the folder is one that nobody else can put programs into.
func (o *serveOptions) checkCredentials() (err error) {
	if o.credentialsDir == "" {
		return nil
	}
	if o.credentialsDir, err = filepath.Abs(o.credentialsDir); err != nil {
		return err
	}
	info, err := os.Stat(o.credentialsDir)
	switch {
	case err != nil:
		return fmt.Errorf("--credentials-dir: %w", err)
	case !info.IsDir():
		return fmt.Errorf("--credentials-dir: %s is no folder", o.credentialsDir)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("--credentials-dir: everybody on this machine may write to %s; chmod o-w it", o.credentialsDir)
	}
	return nil
}

func (o *serveOptions) serverConfig() (server.Config, error) {
	password := os.Getenv(passwordVariable)
	if o.passwordFile != "" {
		var err error
		if password, err = readPassword(o.passwordFile); err != nil {
			return server.Config{}, err
		}
		if password == "" {
			return server.Config{}, fmt.Errorf("password file %s is empty", o.passwordFile)
		}
	}
	config := server.Config{Release: release(), Users: map[string]string{"root": password}, MaxConnections: o.maxConnections}
	if err := config.CheckAddress(o.mysqlAddr); err != nil {
		return config, fmt.Errorf("--mysql-addr: %w (--mysql-password-file)", err)
	}
	var err error
	config.TLS, err = tlsConfig(o.tlsCert, o.tlsKey)
	return config, err
}

func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is in use by another process; stop that one, or choose another address with %s", address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (%s): %w", address, flag, err)
	}
	return l, nil
}

func openStore(dir string, memory budget, logger *slog.Logger) (*storage.Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	store, err := storage.Open(dir, storage.Options{
		Logger: logger, CacheBytes: memory.cache, MemTableBytes: memory.memTable, SegmentMemory: memory.segments, LoadBytes: memory.load,
	})
	if err != nil {
		return nil, explainStore(dir, err)
	}
	return store, nil
}

func serveStore(ctx context.Context, o *serveOptions, config server.Config, memory budget, store *storage.Store, listener net.Listener, logger *slog.Logger) error {
	eng, err := engine.Open(engine.Options{
		MemoryLimitBytes: memory.engine, Threads: o.threads, TempDir: filepath.Join(o.data, "tmp"), PartDirs: []string{filepath.Join(o.data, "parts")}, Logger: logger,
	})
	if err != nil {
		return err
	}
	defer eng.Close()
	manager, err := replica.NewManager(store, logger, replica.Options{CredentialsDir: o.credentialsDir})
	if err != nil {
		return err
	}
	defer manager.Close()
	config.Store, config.Manager, config.Logger, config.DataDir = store, manager, logger, o.data
	var srv *server.Server // is there before anybody can ask
	config.Queries = query.New(query.Options{
		ProcessList: func() *result.Table { return srv.ProcessList() },
		Store:       store, Engine: eng, System: map[string]map[string]func() *result.Table{"system": server.SystemTables(manager)},
		Progress: server.CopyProgress(manager), Readable: server.Readable(manager),
	})
	if srv, err = server.New(config); err != nil {
		return err
	}
	metrics, err := startMetrics(o.metricsAddr, store, manager, srv)
	if err != nil {
		return err
	}
	defer metrics.Close()
	logger.Info("tidemark is ready", "version", release(), "mysql", listener.Addr().String(), "data", o.data)
	return runServer(ctx, srv, listener, logger)
}

// runServer serves until a signal or an error.
func runServer(ctx context.Context, srv *server.Server, listener net.Listener, logger *slog.Logger) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	case s := <-signals:
		logger.Info("stopping; a second signal stops at once", "signal", s.String())
	}
	grace, now := context.WithTimeout(context.Background(), stopGrace)
	defer now()
	go func() {
		select {
		case <-signals:
			// What was committed is durable; there is nothing to clean up that the next start would not.
			os.Exit(exitFailed)
		case <-grace.Done():
		}
	}()
	srv.Shutdown(grace)
	return <-served
}
