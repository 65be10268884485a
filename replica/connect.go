package replica

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/wire"
)

// Connection says how a source is reached. The settings are named after the options of MySQL's own clients, and mean the
// same; files are those of the machine on which the server runs, see [Options.CredentialsDir].
type Connection struct {
	// SSLMode is a [wire.TLSMode] (ssl_mode); empty: preferred, or verify-ca where there is an SSLCA, as for MySQL's clients.
	SSLMode string
	// SSLCA, SSLCert and SSLKey are those of [wire.TLS] (ssl_ca, ssl_cert, ssl_key).
	SSLCA, SSLCert, SSLKey string
	// ServerPublicKeyPath and GetServerPublicKey are ServerKey and AskServerKey of [wire.TLS] (server_public_key_path,
	// get_server_public_key).
	ServerPublicKeyPath string
	GetServerPublicKey  bool
	// PasswordFile has the password in its first line (password_file), PasswordCommand prints it: a program and its arguments,
	// separated by blanks, without a shell (password_command). Either counts instead of the Spec's password, at each connect.
	PasswordFile, PasswordCommand string
	// Socket is the path of a Unix socket instead of the host (socket).
	Socket string
	// ConnectTimeout, ReadTimeout and WriteTimeout are those of [wire.Config], in seconds (connect_timeout, 10; read_timeout,
	// 600; write_timeout, 60).
	ConnectTimeout, ReadTimeout, WriteTimeout time.Duration
	// HeartbeatPeriod is how often an idle source gives a sign of life, in seconds; when three are missing the stream is dead
	// (heartbeat_period, 5).
	HeartbeatPeriod time.Duration
	// AllowReadOnly tells that a source which is read_only is followed (allow_read_only, 0; 1 where it was when the database was
	// created). Without, it is taken for a former primary behind a name that has not changed yet.
	AllowReadOnly bool
}

func defaultConnection() Connection {
	return Connection{ConnectTimeout: wire.DefaultTimeout, ReadTimeout: wire.DefaultReadTimeout, WriteTimeout: wire.DefaultWriteTimeout, HeartbeatPeriod: binlog.DefaultHeartbeat}
}

// heartbeats of a source that are missing before it counts as lost.
const missedHeartbeats = 3

const maxSeconds = 24 * 3600

func seconds(field func(*Settings) *time.Duration) setting {
	return setting{
		set: func(s *Settings, value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 || n > maxSeconds {
				return fmt.Errorf("%q is not a number of seconds from 1 to %d", value, maxSeconds)
			}
			*field(s) = time.Duration(n) * time.Second
			return nil
		},
		get: func(s *Settings) string { return strconv.FormatInt(int64(*field(s)/time.Second), 10) },
	}
}

func text(field func(*Settings) *string) setting {
	return setting{
		set: func(s *Settings, value string) error {
			if strings.ContainsRune(value, 0) {
				return errors.New("it has a zero byte")
			}
			*field(s) = value
			return nil
		},
		get: func(s *Settings) string { return *field(s) },
	}
}

func setSSLMode(s *Settings, value string) error {
	if value == "" {
		s.Connection.SSLMode = ""
		return nil
	}
	mode, err := wire.ParseTLSMode(value)
	if err == nil {
		s.Connection.SSLMode = mode.String()
	}
	return err
}

// validate reports what does not go together.
func (c *Connection) validate() error {
	var errs []error
	if (c.SSLCert == "") != (c.SSLKey == "") {
		errs = append(errs, errors.New("settings ssl_cert and ssl_key go together"))
	}
	if c.PasswordFile != "" && c.PasswordCommand != "" {
		errs = append(errs, errors.New("of the settings password_file and password_command there can be one"))
	}
	return errors.Join(errs...)
}

// mode is the mode that counts.
func (c *Connection) mode() wire.TLSMode {
	mode, err := wire.ParseTLSMode(c.SSLMode)
	switch {
	case err == nil:
		return mode
	case c.SSLCA != "":
		return wire.TLSVerifyCA
	}
	return wire.TLSPreferred
}

// modify changes one setting of a database that is there. Unlike in CREATE DATABASE, where they stand elsewhere, the
// addresses, the user and the password are settings here.
func (s *Spec) modify(name, value string) error {
	switch strings.ToLower(name) {
	case "host":
		first, others, err := wire.ParseAddresses(value)
		if err != nil {
			return err
		}
		s.Host, s.Port, s.Others = first.Host, first.Port, others
	case "user":
		if value == "" {
			return errors.New("setting user: it is empty")
		}
		s.User = value
	case "password":
		s.Password = value
	default:
		return s.Settings.Set(name, value)
	}
	return nil
}

// sameWay tells whether two descriptions reach the same servers in the same way.
func (s *Spec) sameWay(o *Spec) bool {
	return slices.Equal(s.addresses(), o.addresses()) && s.User == o.User && s.Password == o.Password && s.Settings.Connection == o.Settings.Connection
}

// reconnect lets a stream, or one that ended by an error, begin anew when the way to the source has changed. A copy goes
// on: what it connects from now on takes the new way.
func (d *database) reconnect(ctx context.Context, before *Spec) {
	d.mu.Lock()
	same, copying, stopped := before.sameWay(&d.cfg.Spec), d.state == StateSnapshot, d.cfg.Stopped
	if !same {
		d.host = 0
	}
	d.mu.Unlock()
	if same || copying || stopped {
		return
	}
	d.stop()
	d.start(ctx)
}

// addresses are all servers that may be the source; the first one is the one that is meant.
func (s *Spec) addresses() []wire.Address {
	return append([]wire.Address{{Host: s.Host, Port: s.Port}}, s.Others...)
}

// wire gives the way to one of the addresses.
func (s *Spec) wire(at wire.Address) wire.Config {
	c := &s.Settings.Connection
	return wire.Config{
		Host: at.Host, Port: at.Port, Socket: c.Socket, User: s.User,
		Password: s.Password, PasswordFile: c.PasswordFile, PasswordCommand: strings.Fields(c.PasswordCommand),
		TLS:     wire.TLS{Mode: c.mode(), CA: c.SSLCA, Cert: c.SSLCert, Key: c.SSLKey, ServerKey: c.ServerPublicKeyPath, AskServerKey: c.GetServerPublicKey},
		Timeout: c.ConnectTimeout, ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout,
	}
}

// wire gives the way to the server that is the source now.
func (d *database) wire() wire.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.cfg.Spec.addresses()
	return d.wireTo(all[d.host%len(all)])
}

// wireTo is called with mu held.
func (d *database) wireTo(at wire.Address) wire.Config {
	cfg := d.cfg.Spec.wire(at)
	cfg.File = d.m.opt.file
	cfg.TLS.StayEncrypted = d.cfg.Encrypted
	return cfg
}

// dump gives what a stream from the server that is the source now needs besides its start.
func (d *database) dump() binlog.Config {
	period := d.spec().Settings.Connection.HeartbeatPeriod
	return binlog.Config{Source: d.wire(), ServerID: d.serverID(), SpillDir: d.m.opt.SpillDir, Heartbeat: period, DeadAfter: missedHeartbeats * period}
}

// file gives the path of a file or program that a setting names. Whoever may create databases could otherwise run any
// program as the server's user, and send the first line of any file to a host of his own.
func (o *Options) file(name string) (string, error) {
	if o.CredentialsDir == "" {
		return "", errors.New("this server takes no files and programs from settings; start it with --credentials-dir DIR, and put them there")
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.CredentialsDir, path)
	}
	if inside, err := filepath.Rel(o.CredentialsDir, path); err != nil || !filepath.IsLocal(inside) {
		return "", fmt.Errorf("%s is not in the folder for files and programs of settings, %s (--credentials-dir)", name, o.CredentialsDir)
	}
	return path, nil
}

// checkFiles reports the files and programs that the settings may not name.
func (o *Options) checkFiles(c *Connection) error {
	program, _, _ := strings.Cut(strings.TrimSpace(c.PasswordCommand), " ")
	var errs []error
	for _, x := range []struct{ setting, name string }{{"ssl_ca", c.SSLCA}, {"ssl_cert", c.SSLCert}, {"ssl_key", c.SSLKey},
		{"server_public_key_path", c.ServerPublicKeyPath}, {"password_file", c.PasswordFile}, {"password_command", program}} {
		if x.name == "" {
			continue
		}
		if _, err := o.file(x.name); err != nil {
			errs = append(errs, fmt.Errorf("setting %s: %w", x.setting, err))
		}
	}
	return errors.Join(errs...)
}
