// Command mkimage builds a local MySQL image for Docker from MySQL's Debian packages, so that tests can run
// containers where no image registry is reachable. The image is used as the official one is: options for mysqld are
// the container's command, root has no password, the data directory is a volume that is initialized at the first start.
package main

import (
	"archive/tar"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

//go:embed entrypoint.sh
var entrypoint []byte

// skipped are folders of the packages that no server needs.
var skipped = []string{"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian"}

// settings are those of the image, in the words of a Dockerfile.
var settings = []string{
	`ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin`,
	`EXPOSE 3306`,
	`VOLUME /var/lib/mysql`,
	`ENTRYPOINT ["/usr/local/bin/entrypoint.sh"]`,
	`CMD ["mysqld"]`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := build(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
	fmt.Println("built", mysqltest.LocalImage)
}

func build(ctx context.Context, log *slog.Logger) error {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	defer docker.Close()
	if _, err := docker.Ping(ctx, client.PingOptions{}); err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	root, err := mysqltest.Root(ctx, log)
	if err != nil {
		return err
	}
	read, write := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(write, root)
		write.CloseWithError(err)
		packed <- err
	}()
	response, err := docker.ImageImport(ctx,
		client.ImageImportSource{Source: read, SourceName: "-"},
		mysqltest.LocalImage, client.ImageImportOptions{Message: "MySQL from Debian packages", Changes: settings})
	if err == nil {
		_, err = io.Copy(io.Discard, response)
		err = errors.Join(err, response.Close())
	}
	read.CloseWithError(errors.New("the engine stopped reading"))
	return errors.Join(err, <-packed)
}

// pack writes the image's root file system.
func pack(w io.Writer, root string) error {
	t := tar.NewWriter(w)
	if err := packTree(t, root); err != nil {
		return err
	}
	if err := packExtras(t); err != nil {
		return err
	}
	return t.Close()
}

func packTree(t *tar.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		for _, skip := range skipped {
			if name == skip {
				return fs.SkipDir
			}
		}
		return packFile(t, path, name, d)
	})
}

func packFile(t *tar.Writer, path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode().Type() == fs.ModeSymlink {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// Everything belongs to root there, whoever unpacked it here.
	h.Name, h.Uid, h.Gid, h.Uname, h.Gname = name, 0, 0, "", ""
	if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(t, f)
	return err
}

// packExtras adds what Debian's base system would bring: the links of a merged /usr, users, folders to write to.
func packExtras(t *tar.Writer) error {
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name, Mode: 0o777}); err != nil {
			return err
		}
	}
	for _, dir := range []tar.Header{{Name: "tmp", Mode: 0o1777}, {Name: "var/lib/mysql", Mode: 0o755}, {Name: "var/run/mysqld", Mode: 0o755}, {Name: "root", Mode: 0o700}} {
		dir.Typeflag = tar.TypeDir
		if err := t.WriteHeader(&dir); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		name string
		mode int64
		text string
	}{
		{"etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n"},
		{"etc/group", 0o644, "root:x:0:\n"},
		{"usr/local/bin/entrypoint.sh", 0o755, string(entrypoint)},
	} {
		h := tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: file.mode, Size: int64(len(file.text)), ModTime: time.Unix(0, 0)}
		if err := t.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := io.Copy(t, strings.NewReader(file.text)); err != nil {
			return err
		}
	}
	return nil
}
