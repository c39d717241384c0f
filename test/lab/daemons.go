package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/contiv/netplugin/install/k8s"
	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/errs"
)

// Daemons of a host, by their names on the command line. ovs is both daemons of Open
// vSwitch, which can also be named separately.
const (
	netmaster   = "netmaster"
	netplugin   = "netplugin"
	etcd        = "etcd"
	consul      = "consul"
	ovs         = "ovs"
	ovsdbServer = "ovsdb-server"
	vswitchd    = "ovs-vswitchd"
)

// Daemons lists what runs on the host, in the order of starting.
func (h *Host) Daemons() []string {
	c, list := h.lab.cfg, []string{ovs}
	if c.Bare && !c.Kubernetes {
		return list
	}
	if h.Number <= c.Masters {
		switch c.Store {
		case StoreEtcd:
			list = append(list, etcd)
		case StoreConsul:
			list = append(list, consul)
		}
		if !c.Bare {
			list = append(list, netmaster)
		}
	}
	if c.Relay {
		list = append(list, relay)
	}
	if c.Kubernetes && h.Number == 1 {
		list = append(list, controlPlane()...)
	}
	if !c.Bare && !c.Managed {
		list = append(list, netplugin)
	}
	if c.Kubernetes {
		list = append(list, containerd, kubelet)
	}
	if c.Docker != DockerNone {
		list = append(list, docker)
	}
	return list
}

func (h *Host) checkDaemon(name string) error {
	known := h.Daemons()
	if slices.Contains(append(known, ovsdbServer, vswitchd), name) {
		return nil
	}
	return errs.New(errs.Invalid, "daemon %q: %s runs %s", name, h.Name, strings.Join(known, ", "))
}

// StartDaemon starts a daemon of the host and returns when it is ready. Contiv's daemons
// and their stores take further flags.
func (h *Host) StartDaemon(ctx context.Context, name string, flags ...string) error {
	if err := h.checkDaemon(name); err != nil {
		return err
	}
	switch name {
	case ovs:
		return h.startOVS(ctx)
	case ovsdbServer:
		return h.startOVSDB(ctx)
	case vswitchd:
		return h.startVswitchd(ctx)
	}
	began := time.Now()
	d := h.daemon(name)
	d.Args = append(d.Args, flags...)
	if err := h.launch(ctx, d); err != nil {
		return err
	}
	if err := h.AwaitReady(ctx, name); err != nil {
		return err
	}
	if name == kubeAPI && !h.lab.cfg.Bare {
		if _, err := h.lab.KubectlInput(ctx, k8s.Only("ServiceAccount", "ClusterRole", "ClusterRoleBinding"), "apply", "-f", "-"); err != nil {
			return err
		}
	}
	if name == containerd {
		if err := h.importKubeImages(ctx); err != nil {
			return err
		}
	}
	if name == kubelet && h.Number == 1 && h.lab.cfg.Bare {
		if err := h.lab.markControlPlane(ctx); err != nil {
			return err
		}
	}
	if name == docker {
		if err := h.importImage(ctx); err != nil {
			return err
		}
	}
	h.lab.say("%s: %s ready after %s", h.Name, name, since(began))
	return nil
}

// StopDaemon signals a daemon and returns when it has ended. After TERM it sends KILL,
// with an error, when the daemon takes longer than stopPatience.
func (h *Host) StopDaemon(ctx context.Context, name string, signal syscall.Signal) error {
	if err := h.checkDaemon(name); err != nil {
		return err
	}
	client, err := h.client()
	if err != nil {
		return err
	}
	parts := []string{name}
	if name == ovs {
		parts = []string{vswitchd, ovsdbServer}
	}
	for _, part := range parts {
		if err := stop(ctx, client, part, signal); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return nil
}

// stopPatience bounds how long a daemon may take to end; an Engine gives its containers
// 15 s of it.
func stopPatience(name string) time.Duration {
	if name == docker {
		return time.Minute
	}
	return 15 * time.Second
}

func stop(ctx context.Context, c *hostinit.Client, name string, signal syscall.Signal) error {
	patience := stopPatience(name)
	late := errs.New(errs.Timeout, "%s had not ended %s after %s", name, patience, signal)
	patient, cancel := context.WithTimeoutCause(ctx, patience, late)
	defer cancel()
	_, err := c.Stop(patient, name, signal)
	if err == nil || patient.Err() == nil || ctx.Err() != nil {
		return err
	}
	_, err = c.Stop(ctx, name, syscall.SIGKILL)
	return errors.Join(late, err)
}

// RestartDaemon stops a daemon with a signal and starts it again. Restarting ovs restarts
// ovs-vswitchd only: its database keeps running, as when the package is upgraded.
func (h *Host) RestartDaemon(ctx context.Context, name string, signal syscall.Signal) error {
	if name == ovs {
		name = vswitchd
	}
	if err := h.StopDaemon(ctx, name, signal); err != nil {
		return err
	}
	return h.StartDaemon(ctx, name)
}

// daemon is the command line of a Contiv daemon or of its store.
func (h *Host) daemon(name string) hostinit.Daemon {
	d := hostinit.Daemon{Name: name, Log: logPath(name), Args: h.kubeArgs(name)}
	switch name {
	case netmaster:
		d.Args = h.netmasterArgs()
	case netplugin:
		d.Args = h.netpluginArgs()
	case etcd:
		d.Args = h.etcdArgs()
	case consul:
		d.Args = h.consulArgs()
	case docker:
		d.Args = h.dockerArgs()
	case relay:
		d.Args = []string{"netplugin", "docker-relay", "--log-level", h.lab.cfg.LogLevel}
	}
	return d
}

// launch starts a daemon through the host's init.
func (h *Host) launch(ctx context.Context, d hostinit.Daemon) error {
	client, err := h.client()
	if err != nil {
		return err
	}
	if _, err := client.Start(ctx, d); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

// probe asks a daemon once whether it is ready.
func (h *Host) probe(ctx context.Context, daemon string) error {
	switch daemon {
	case ovsdbServer:
		return h.dial(ctx, "/run/openvswitch/db.sock")
	case relay:
		return h.dial(ctx, "/run/docker/plugins/netplugin.sock")
	case netmaster:
		return h.askReady(ctx, 9999)
	case netplugin:
		if err := h.askReady(ctx, 9090); err != nil || !h.lab.cfg.Mesos {
			return err
		}
		return h.dial(ctx, "/run/contiv/contiv-mesos.sock")
	case docker:
		return h.pingDocker(ctx)
	case kubeEtcd, kubeAPI, kubeController, kubeScheduler, containerd, kubelet:
		return h.probeKubernetes(ctx, daemon)
	case consul:
		return h.ask(ctx, "http://127.0.0.1:8500/v1/kv/?keys&consistent") // needs a leader
	}
	return h.ask(ctx, "http://127.0.0.1:2379/health") // etcd
}

// dial reports whether somebody listens on a unix socket of the host.
func (h *Host) dial(ctx context.Context, socket string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/%d/root%s", h.pid, socket))
	if err != nil {
		return err
	}
	return conn.Close()
}

// askAgain is the interval of probes of a starting daemon: none of them announces
// that it is ready.
const askAgain = 10 * time.Millisecond

// AwaitReady waits until a daemon says it is ready. It fails at once when the daemon
// ends, and with the daemon's own reason when ctx does.
func (h *Host) AwaitReady(ctx context.Context, name string) error {
	client, err := h.client()
	if err != nil {
		return err
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		status, err := client.Exit(asking, name)
		if err != nil {
			return // asking has ended
		}
		cancel(errs.New(errs.Unavailable, "it ended: %s", status.Exit))
	}()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	reason := errors.New("no answer yet")
	for {
		if err := h.probe(asking, name); err == nil {
			return nil
		} else if asking.Err() == nil {
			reason = err
		}
		select {
		case <-tick.C:
		case <-asking.Done():
			return fmt.Errorf("%s: wait for %s to be ready: %w (last answer: %v)\n%s",
				h.Name, name, context.Cause(asking), reason, h.LogTail(name))
		}
	}
}

func (h *Host) ask(ctx context.Context, url string) error { return askWith(ctx, h.HTTP(), url) }

func askWith(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
