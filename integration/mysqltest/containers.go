package mysqltest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

const (
	officialImage = "mysql:8.4"

	// LocalImage is the image that `make mysql-image` builds from the Debian packages.
	LocalImage = "tidemark/mysql:local"

	// ownerLabel names the process that started a container, so that a later one knows when it is left over.
	ownerLabel = "org.tidemark.mysqltest.owner"

	pullTimeout = 5 * time.Minute
	mysqlPort   = "3306/tcp"
)

// containers runs MySQL in Docker, through Testcontainers.
type containers struct {
	image  string
	docker client.APIClient
}

func (*containers) kind() Kind { return Testcontainers }

func (c *containers) probe(ctx context.Context, log *slog.Logger) error {
	// Testcontainers removes leftovers with a helper container of an image of its own, which needs a registry.
	// removeLeftovers does that here.
	if err := setDefaultEnv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return err
	}
	tclog.SetDefault(tclog.NewNoopLogger()) // it narrates to stderr
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("no Docker engine answers: %w: %w", err, errAbsent)
	}
	c.docker = docker
	if c.image, err = c.findImage(ctx, log, os.Getenv(envImage)); err != nil {
		return err
	}
	return c.removeLeftovers(ctx)
}

func setDefaultEnv(name, value string) error {
	if _, ok := os.LookupEnv(name); ok {
		return nil
	}
	return os.Setenv(name, value)
}

// findImage takes the wanted image, or the first default that is there; what is missing is pulled.
func (c *containers) findImage(ctx context.Context, log *slog.Logger, wanted string) (string, error) {
	images := []string{wanted}
	if wanted == "" {
		images = []string{officialImage, LocalImage}
	}
	for _, image := range images {
		if _, err := c.docker.ImageInspect(ctx, image); err == nil {
			return image, nil
		}
	}
	log.Info("mysqltest: pulling an image, once", "image", images[0])
	if err := c.pull(ctx, images[0]); err != nil {
		return "", fmt.Errorf("the image %s can't be had (`make mysql-image` builds one without a registry): %w", images[0], err)
	}
	return images[0], nil
}

func (c *containers) pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	response, err := c.docker.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	defer response.Close()
	return response.Wait(ctx)
}

// removeLeftovers removes the containers of processes of this machine that are gone.
func (c *containers) removeLeftovers(ctx context.Context) error {
	list, err := c.docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", ownerLabel)})
	if err != nil {
		return fmt.Errorf("listing containers: %w", err)
	}
	for _, left := range list.Items {
		if !ownerIsGone(left.Labels[ownerLabel]) {
			continue
		}
		_, err := c.docker.ContainerRemove(ctx, left.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil {
			return fmt.Errorf("removing a container that an earlier run left: %w", err)
		}
	}
	return nil
}

// owner names this process: the machine, the process id, and when the process started, since ids come again.
func owner() string {
	host, _ := os.Hostname()
	return host + " " + strconv.Itoa(os.Getpid()) + " " + startTime(os.Getpid())
}

// ownerOf is the label's value: nobody's for a container that may stay.
func ownerOf(o Options) string {
	if o.Detached {
		return "nobody"
	}
	return owner()
}

func ownerIsGone(label string) bool {
	words := strings.Fields(label)
	host, _ := os.Hostname()
	if len(words) != 3 || words[0] != host {
		return false
	}
	pid, err := strconv.Atoi(words[1])
	return err == nil && startTime(pid) != words[2]
}

// startTime is when a process of this machine started, in the kernel's ticks; "gone" when there is none.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "gone"
	}
	// The second field is the name in parentheses and may hold anything; proc(5): starttime is the 22nd.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "gone"
	}
	return fields[19]
}

// dockerHost is the address at which published ports are reached, and the one on which they are published.
// Testcontainers would guess the gateway when it finds itself in a container, also where the engine runs in that
// same container; whoever shares the engine of the outside sets TESTCONTAINERS_HOST_OVERRIDE.
func (c *containers) dockerHost() (host string, publish netip.Addr) {
	if override := os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"); override != "" && override != "127.0.0.1" {
		return override, netip.IPv4Unspecified()
	}
	if url, err := client.ParseHostURL(c.docker.DaemonHost()); err == nil && url.Scheme == "tcp" {
		return url.Hostname(), netip.IPv4Unspecified()
	}
	return "127.0.0.1", netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

func (c *containers) launch(ctx context.Context, o Options) (instance, error) {
	host, publish := c.dockerHost()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	request := testcontainers.ContainerRequest{
		Image:        c.image,
		ExposedPorts: []string{mysqlPort},
		Env:          map[string]string{"MYSQL_ALLOW_EMPTY_PASSWORD": "yes", "MYSQL_ROOT_HOST": "%"},
		Cmd:          o.serverArgs(),
		Labels:       map[string]string{ownerLabel: ownerOf(o)},
		HostConfigModifier: func(h *container.HostConfig) {
			// A fixed port: Docker would choose another one each time the container starts.
			h.PortBindings = network.PortMap{network.MustParsePort(mysqlPort): {{HostIP: publish, HostPort: strconv.Itoa(port)}}}
		},
	}
	running, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: request,
		Started:          true,
	})
	b := &box{containers: c, container: running, address: Login{Host: host, Port: port, User: "root"}}
	if err != nil {
		if running != nil {
			err = fmt.Errorf("%w: %w", err, b.remove(ctx))
		}
		return nil, err
	}
	return b, nil
}

// box is a MySQL in a container.
type box struct {
	*containers
	container testcontainers.Container
	address   Login
}

func (b *box) id() string      { return b.container.GetContainerID() }
func (b *box) login() Login    { return b.address }
func (b *box) dataDir() string { return "" }
func (b *box) endCommand() string {
	return "docker rm --force --volumes " + b.id()[:12]
}

func (b *box) start(ctx context.Context) error { return b.container.Start(ctx) }

func (b *box) stop(ctx context.Context) error {
	patience := 2 * time.Minute
	return b.container.Stop(ctx, &patience)
}

func (b *box) kill(ctx context.Context) error {
	if _, err := b.docker.ContainerKill(ctx, b.id(), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return fmt.Errorf("killing the container: %w", err)
	}
	wait := b.docker.ContainerWait(ctx, b.id(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-wait.Result:
		return nil
	case err := <-wait.Error:
		return fmt.Errorf("waiting for the killed container: %w", err)
	}
}

func (b *box) pause(ctx context.Context) error {
	_, err := b.docker.ContainerPause(ctx, b.id(), client.ContainerPauseOptions{})
	return err
}

func (b *box) resume(ctx context.Context) error {
	_, err := b.docker.ContainerUnpause(ctx, b.id(), client.ContainerUnpauseOptions{})
	return err
}

func (b *box) remove(ctx context.Context) error {
	_, err := b.docker.ContainerRemove(ctx, b.id(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}

func (b *box) failure() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	state, err := b.container.State(ctx)
	if err != nil || state.Running {
		return ""
	}
	logs, err := b.container.Logs(ctx)
	if err != nil {
		return "it wrote no log: " + err.Error()
	}
	defer logs.Close()
	out, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	return tail(out)
}
