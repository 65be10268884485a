package mysqltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// debianSuite carries MySQL; Debian's releases carry MariaDB only.
	debianSuite = "sid"

	wrapperScript = "#!/bin/sh\nexec %s \"$@\"\n"
)

// wantedPackages come with all their libraries. The shell and the core utilities are for the image made of them.
var wantedPackages = []string{"mysql-server-core", "mysql-client-core", "dash", "coreutils"}

// clientPrograms are the programs that get a wrapper script.
var clientPrograms = []string{"mysql", "mysqldump", "mysqlbinlog", "mysqladmin"}

// packages are MySQL's Debian packages, unpacked in the cache.
type packages struct{ software }

func (*packages) kind() Kind { return Debian }

func (p *packages) probe(ctx context.Context, log *slog.Logger) error {
	u, err := unpackedPackages(ctx, log)
	if err != nil {
		return err
	}
	p.mysqld = u.mysqld()
	return nil
}

// unpacked is the folder with the contents of the packages: a small root file system.
type unpacked struct{ dir string }

// Root returns the folder into which the Debian packages of MySQL are unpacked, and fetches them first where that has
// not been done. It is a root file system without the links of a merged /usr.
func Root(ctx context.Context, log *slog.Logger) (string, error) {
	u, err := unpackedPackages(ctx, log)
	return u.root(), err
}

func unpackedPackages(ctx context.Context, log *slog.Logger) (unpacked, error) {
	return unpack(ctx, log, "debian-"+debianSuite, wantedPackages)
}

// unpack gives the folder name of the cache with the contents of the packages; they are fetched once.
func unpack(ctx context.Context, log *slog.Logger, name string, packages []string) (unpacked, error) {
	base, err := cacheDir()
	if err != nil {
		return unpacked{}, err
	}
	u := unpacked{filepath.Join(base, name)}
	err = once(ctx, u.dir, func(unfinished string) error {
		log.Info("mysqltest: fetching Debian packages, once", "packages", packages, "folder", u.dir)
		return fetchPackages(ctx, unfinished, u, packages)
	})
	if err != nil {
		return unpacked{}, fmt.Errorf("the Debian packages %s: %w", strings.Join(packages, ", "), err)
	}
	return u, nil
}

// PackageCommand prepares a program of another Debian package of the suite that MySQL comes from, under the package's own
// loader and libraries. The system stays as it is.
func PackageCommand(ctx context.Context, pkg, program string, args ...string) (*exec.Cmd, error) {
	u, err := unpack(ctx, slog.New(slog.DiscardHandler), "debian-"+debianSuite+"-"+pkg, []string{pkg})
	if err != nil {
		return nil, err
	}
	words := append(u.loader(), filepath.Join(u.root(), "usr/bin", program))
	if _, err := os.Stat(words[len(words)-1]); err != nil {
		return nil, fmt.Errorf("the Debian package %s has no program %s: %w", pkg, program, errAbsent)
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], args...)...)
	// Debian's client programs are linked with MariaDB's library, which looks for its plugins in the system.
	plugins, err := filepath.Glob(filepath.Join(u.root(), "usr/lib/*/libmariadb3/plugin"))
	if err == nil && len(plugins) > 0 {
		cmd.Env = append(os.Environ(), "MARIADB_PLUGIN_DIR="+plugins[0])
	}
	return cmd, nil
}

func (u unpacked) root() string            { return filepath.Join(u.dir, "root") }
func (u unpacked) wrapper(n string) string { return filepath.Join(u.dir, "bin", n) }

// loader is the dynamic loader of the packages' own C library, with the option that names their libraries. The
// machine's C library may be older than the programs need.
func (u unpacked) loader() []string {
	found, err := filepath.Glob(filepath.Join(u.root(), "usr/lib/*/ld-linux-*.so.*"))
	if err != nil || len(found) == 0 {
		found = []string{filepath.Join(u.root(), "usr/lib/ld-linux-is-missing")}
	}
	return []string{found[0], "--library-path", filepath.Dir(found[0])}
}

func (u unpacked) mysqld() []string {
	share := filepath.Join(u.root(), "usr/share/mysql")
	return append(u.loader(),
		filepath.Join(u.root(), "usr/sbin/mysqld"),
		"--no-defaults",
		"--lc-messages-dir="+share,
		"--character-sets-dir="+filepath.Join(share, "charsets"),
		"--plugin-dir="+filepath.Join(u.root(), "usr/lib/mysql/plugin"))
}

// fetchPackages lets apt fetch and check the packages, and unpacks them. The result is written as it will be used at
// final, the name that dir gets afterwards.
func fetchPackages(ctx context.Context, dir string, final unpacked, packages []string) error {
	a, err := newApt(dir)
	if err != nil {
		return err
	}
	files, err := a.download(ctx, packages)
	if err != nil {
		return err
	}
	now := unpacked{dir}
	if err := os.RemoveAll(now.root()); err != nil {
		return err
	}
	for _, file := range files {
		// Maintenance scripts in Perl are never run here.
		if name := filepath.Base(file); strings.HasPrefix(name, "perl") || strings.HasPrefix(name, "libperl") {
			continue
		}
		if err := run(ctx, "dpkg", "--extract", file, now.root()); err != nil {
			return err
		}
	}
	if err := now.writeWrappers(final); err != nil {
		return err
	}
	return os.RemoveAll(a.dir)
}

// writeWrappers makes scripts that run the client programs under their own loader.
func (u unpacked) writeWrappers(final unpacked) error {
	if err := os.MkdirAll(filepath.Join(u.dir, "bin"), 0o755); err != nil {
		return err
	}
	for _, name := range clientPrograms {
		words := append(u.loader(), filepath.Join(u.root(), "usr/bin", name))
		if _, err := os.Stat(words[len(words)-1]); err != nil {
			continue // not in these packages
		}
		for i, word := range words {
			words[i] = "'" + strings.Replace(word, u.dir, final.dir, 1) + "'"
		}
		script := fmt.Sprintf(wrapperScript, strings.Join(words, " "))
		if err := os.WriteFile(u.wrapper(name), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// apt runs the machine's apt on lists, caches and a package status of its own below dir.
type apt struct {
	dir     string
	options []string
}

func newApt(parent string) (apt, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return apt{}, fmt.Errorf("no apt-get, this is no Debian: %w", errAbsent)
	}
	source, err := debianMirror()
	if err != nil {
		return apt{}, err
	}
	a := apt{dir: filepath.Join(parent, "apt")}
	for _, folder := range []string{"state/lists/partial", "cache/archives/partial", "log"} {
		if err := os.MkdirAll(filepath.Join(a.dir, folder), 0o700); err != nil {
			return apt{}, err
		}
	}
	sources, status := filepath.Join(a.dir, "mysql.sources"), filepath.Join(a.dir, "state", "status")
	// Nothing counts as installed, so that every library is fetched. apt locks the folder the status is in.
	if err := os.WriteFile(status, nil, 0o600); err != nil {
		return apt{}, err
	}
	a.options = []string{
		"-oDir::Etc::sourcelist=" + sources,
		"-oDir::Etc::sourceparts=/dev/null",
		"-oDir::Etc::preferences=/dev/null",
		"-oDir::Etc::preferencesparts=/dev/null",
		"-oDir::State=" + filepath.Join(a.dir, "state"),
		"-oDir::State::status=" + status,
		"-oDir::Cache=" + filepath.Join(a.dir, "cache"),
		"-oDir::Log=" + filepath.Join(a.dir, "log"),
		"-oAcquire::Languages=none",
		"-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		"-oAcquire::Retries=3",
		"-oAPT::Install-Recommends=false",
		"-oAPT::Sandbox::User=", // the user apt would change to may not enter the cache folder
	}
	return a, os.WriteFile(sources, []byte(source.stanza(debianSuite)), 0o600)
}

// download returns the package files, dependencies included. A broken-off download is taken up where it stopped.
func (a apt) download(ctx context.Context, names []string) ([]string, error) {
	if err := a.get(ctx, "update"); err != nil {
		return nil, err
	}
	if err := a.get(ctx, append([]string{"--download-only", "--yes", "install"}, names...)...); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(a.dir, "cache/archives/*.deb"))
	if err == nil && len(files) == 0 {
		err = errors.New("apt-get fetched nothing")
	}
	slices.Sort(files)
	return files, err
}

func (a apt) get(ctx context.Context, args ...string) error {
	return run(ctx, "apt-get", append(slices.Clone(a.options), args...)...)
}

func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args[len(args)-1], err, tail(out))
	}
	return nil
}
