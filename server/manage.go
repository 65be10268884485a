package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/replica"
	"github.com/tidemarkdb/tidemark/server/admin"
	"github.com/tidemarkdb/tidemark/storage"
)

// Manager is what runs the materialized databases: a [replica.Manager].
type Manager interface {
	Create(ctx context.Context, spec replica.Spec, ifNotExists bool) error
	Start(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Drop(ctx context.Context, name string, ifExists bool) error
	Resync(ctx context.Context, name, table string) error
	ModifySettings(ctx context.Context, name string, settings map[string]string) error
	Status() []replica.Status
	Brief() []replica.Brief
	Log(limit int) []replica.LogEntry
	Verify(ctx context.Context, name string, report func(replica.TableResult)) error
}

// manage carries out a statement that manages databases. It ends the transaction under way, as DDL does.
func (s *session) manage(ctx context.Context, st admin.Statement) (outcome, error) {
	s.endTransaction()
	m := s.server.manager
	switch st := st.(type) {
	case *admin.CreateDatabase:
		return done, s.createDatabase(ctx, st)
	case *admin.AlterDatabase:
		settings, err := settingsMap(st.Settings)
		if err != nil {
			return outcome{}, err
		}
		return done, s.managed(st.Name, m.ModifySettings(ctx, st.Name, settings))
	case *admin.DropDatabase:
		return done, s.dropDatabase(ctx, st)
	case *admin.Start:
		return done, s.managed(st.Name, m.Start(ctx, st.Name))
	case *admin.Stop:
		return done, s.managed(st.Name, m.Stop(ctx, st.Name))
	case *admin.Resync:
		return done, s.resync(ctx, st)
	case *admin.Verify:
		return s.verify(ctx, st.Name)
	case *admin.VerifyStore:
		return s.verifyStore(ctx)
	}
	return outcome{}, fmt.Errorf("server: no way to carry out a %T", st)
}

// managed gives an error of the manager its MySQL number.
func (s *session) managed(name string, err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return sqlerr.New(sqlerr.UnknownDatabase, "Unknown database '%s'", name)
	case errors.Is(err, storage.ErrExists):
		return sqlerr.New(sqlerr.DatabaseExists, "Can't create database '%s'; database exists", name)
	}
	return err
}

func settingsMap(list []admin.Setting) (map[string]string, error) {
	m := make(map[string]string, len(list))
	for _, s := range list {
		if _, twice := m[s.Name]; twice {
			return nil, sqlerr.New(sqlerr.Parse, "Setting %s is given twice", s.Name)
		}
		m[s.Name] = s.Value
	}
	return m, nil
}

func (s *session) createDatabase(ctx context.Context, st *admin.CreateDatabase) error {
	if err := s.server.checkNewName(st.Name); err != nil {
		return err
	}
	spec, err := SpecOf(st)
	if err != nil {
		return sqlerr.New(sqlerr.WrongArguments, "%s", err.Error())
	}
	return s.managed(st.Name, s.server.manager.Create(ctx, spec, st.IfNotExists))
}

// SpecOf is what a CREATE DATABASE asks for, with the defaults of what it does not say. The error names all settings that
// are wrong.
func SpecOf(st *admin.CreateDatabase) (replica.Spec, error) {
	spec := replica.Spec{
		Name: st.Name, Host: st.Host, Port: st.Port, Others: st.Others, SourceDatabase: st.SourceDatabase, User: st.User, Password: st.Password,
		Settings: replica.DefaultSettings(),
	}
	var faults []error
	for _, setting := range st.Settings {
		faults = append(faults, spec.Settings.Set(setting.Name, setting.Value))
	}
	return spec, errors.Join(faults...)
}

const maxNameLength = 64

// checkNewName refuses names that are taken by databases of another kind, or that could not be used.
func (s *Server) checkNewName(name string) error {
	switch {
	case name == "" || len([]rune(name)) > maxNameLength || strings.HasSuffix(name, " ") || strings.ContainsRune(name, 0):
		return sqlerr.New(sqlerr.WrongDatabaseName, "Incorrect database name '%s'", name)
	case s.queries.IsReserved(name):
		return sqlerr.New(sqlerr.DatabaseExists, "Can't create database '%s'; the name is reserved", name)
	}
	return nil
}

func (s *session) dropDatabase(ctx context.Context, st *admin.DropDatabase) error {
	if s.server.queries.IsReserved(st.Name) {
		return sqlerr.New(1044, "Access denied for user '%s'@'%s' to database '%s'", s.user, s.conn.host(), st.Name)
	}
	err := s.server.manager.Drop(ctx, st.Name, st.IfExists)
	if errors.Is(err, storage.ErrNotFound) {
		return sqlerr.New(sqlerr.DatabaseMissing, "Can't drop database '%s'; database doesn't exist", st.Name)
	}
	if err == nil && s.database == st.Name {
		s.database = ""
	}
	return err
}

func (s *session) resync(ctx context.Context, st *admin.Resync) error {
	err := s.server.manager.Resync(ctx, st.Database, st.Table)
	var missing *replica.NoTableError
	if errors.As(err, &missing) {
		return sqlerr.New(sqlerr.NoSuchTable, "%s", err.Error())
	}
	return s.managed(st.Database, err)
}

// verify compares a database with its source: one row a table, sent when the table is done.
func (s *session) verify(ctx context.Context, name string) (outcome, error) {
	if _, err := s.server.queries.CheckDatabase(name); err != nil {
		return outcome{}, err
	}
	fields := []field.Field{
		result.Object("table"), result.Name("outcome"), result.Int("rows"), result.LongText("keys"), result.LongText("note"),
	}
	return outcome{rows: streamed(ctx, fields, func(ctx context.Context, add func(values ...any)) error {
		return s.managed(name, s.server.manager.Verify(ctx, name, func(r replica.TableResult) {
			add(r.Table, string(r.Outcome), r.Rows, strings.Join(r.Keys, "\n"), r.Note)
		}))
	})}, nil
}

// verifyStore reads the whole store back: one row a problem, none when it is sound.
func (s *session) verifyStore(ctx context.Context) (outcome, error) {
	report, err := s.server.config.Store.Verify(ctx)
	if err != nil {
		return outcome{}, err
	}
	t := result.NewTable(result.LongText("problem"))
	for _, p := range report.Problems {
		t.Add(p)
	}
	s.warn("Note", sqlerr.Unknown, "%s", report.String())
	return outcome{rows: t}, nil
}

// streamedRows are rows that a function adds while it runs.
type streamedRows struct {
	fields []field.Field
	rows   chan []any
	err    error // set before rows is closed
	stop   context.CancelFunc
	over   chan struct{}
}

// streamed runs fn beside the reader of the rows; fn waits while the reader does.
func streamed(ctx context.Context, fields []field.Field, fn func(ctx context.Context, add func(values ...any)) error) result.Rows {
	ctx, stop := context.WithCancel(ctx)
	r := &streamedRows{fields: fields, rows: make(chan []any), stop: stop, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		defer close(r.rows)
		r.err = fn(ctx, func(values ...any) {
			select {
			case r.rows <- values:
			case <-ctx.Done():
			}
		})
	}()
	return r
}

func (r *streamedRows) Fields() []field.Field { return r.fields }

func (r *streamedRows) Next() (result.Cells, error) {
	values, ok := <-r.rows
	if ok {
		t := result.NewTable(r.fields...)
		t.Add(values...)
		return t.Next()
	}
	if r.err != nil {
		return nil, r.err
	}
	return nil, io.EOF
}

func (r *streamedRows) Close() {
	r.stop()
	<-r.over
}
