package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/contiv/netplugin/utils/errs"
)

// docker is the Docker Engine of a host; containerd and the rest it starts itself. relay
// stands between it and netplugin.
const (
	docker = "docker"
	relay  = "docker-relay"
)

// Values of Config.Docker.
const (
	DockerNone   = ""   // no Engine
	DockerPacked = "20" // that of the distribution
	DockerBuilt  = "28" // the one scripts/dockerd builds
)

// dockerClient is the distribution's, whatever else is in PATH: it speaks the same API to
// every Engine.
const dockerClient = "/usr/bin/docker"

// Image is the image of a lab's containers: busybox only.
const Image = "busybox"

// dockerBinary is where scripts/dockerd puts the Engine.
func dockerBinary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errs.New(errs.NotFound, "where the Docker Engine was built: %w", err)
	}
	return filepath.Join(cache, "contiv", "dockerd-28.5.2", "dockerd"), nil
}

// HasDocker reports whether this machine has an Engine for Config.Docker.
func HasDocker(version string) bool { return findDocker(version) == nil }

func findDocker(version string) error {
	switch version {
	case DockerNone:
		return nil
	case DockerBuilt:
		binary, err := dockerBinary()
		if err != nil {
			return err
		}
		if _, err := os.Stat(binary); err != nil {
			return errs.New(errs.NotFound, "program %s is missing: run make dockerd", binary)
		}
	}
	if _, err := os.Stat(dockerClient); err != nil {
		return errs.New(errs.NotFound, "program %s is missing: run scripts/deps", dockerClient)
	}
	for _, name := range []string{"dockerd", "containerd", "runc", "busybox"} {
		if !inHostPath(name) {
			return errs.New(errs.NotFound, "program %s is missing: run scripts/deps", name)
		}
	}
	return nil
}

func (h *Host) dockerArgs() []string {
	program := "dockerd"
	if h.lab.cfg.Docker == DockerBuilt {
		if binary, err := dockerBinary(); err == nil {
			program = binary
		}
	}
	args := []string{program, "--cgroup-parent", h.lab.cgroup() + "/" + h.Name}
	if h.lab.cfg.SharedDocker {
		args = append(args, "--cluster-store", fmt.Sprintf("etcd://%s:2379", h.lab.Masters()[0].ControlIP()), "--cluster-advertise", h.ControlIP()+":2376")
	}
	return args
}

// cgroup is the parent of the lab's containers, below the root of every hierarchy. The
// hierarchies are the machine's: a name of its own keeps labs separate, and Down removes it.
func (l *Lab) cgroup() string { return cgroupOf(l.cfg.Dir) }

func cgroupOf(dir string) string {
	return "/contiv-lab" + strings.NewReplacer("/", "_", ":", "_").Replace(filepath.Clean(dir))
}

// removeCgroups removes what is left of a cgroup whose processes are gone, in every
// hierarchy.
func removeCgroups(cgroup string) error {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*")
	if err != nil {
		return err
	}
	var failed []error
	for _, root := range append(hierarchies, "/sys/fs/cgroup") {
		var all []string
		top := filepath.Join(root, cgroup)
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // of the second version there is one hierarchy, with files
				return nil
			}
			return err
		})
		failed = append(failed, err)
		for i := len(all) - 1; i >= 0; i-- { // children first
			if err := os.Remove(all[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, fmt.Errorf("remove cgroup: %w", err))
			}
		}
	}
	return errors.Join(failed...)
}

// pingDocker reports whether the Engine answers.
func (h *Host) pingDocker(ctx context.Context) error {
	socket := fmt.Sprintf("/proc/%d/root/run/docker.sock", h.pid)
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errs.New(errs.Unavailable, "docker: %s", resp.Status)
	}
	return nil
}

// importImage loads the image into the host's Engine, if it is not there.
func (h *Host) importImage(ctx context.Context) error {
	if have, err := h.Docker(ctx, "images", "-q", Image); err != nil || have != "" {
		return err
	}
	const script = `set -e
d=$(mktemp -d); trap 'rm -rf $d' EXIT
mkdir -p $d/bin $d/etc $d/tmp $d/root $d/proc $d/sys $d/dev
cp "$(command -v busybox)" $d/bin/busybox
for a in $(busybox --list); do [ $a = busybox ] || ln -s busybox $d/bin/$a; done
echo root:x:0:0:root:/root:/bin/sh >$d/etc/passwd
echo root:x:0: >$d/etc/group
tar -C $d -c . | ` + dockerClient + ` import --change 'CMD ["/bin/sh"]' - ` + Image + ` >/dev/null`
	_, err := h.Output(ctx, "sh", "-c", script)
	return err
}

// Docker runs the docker client on the host and returns what it prints.
func (h *Host) Docker(ctx context.Context, args ...string) (string, error) {
	return h.Output(ctx, append([]string{dockerClient}, args...)...)
}
