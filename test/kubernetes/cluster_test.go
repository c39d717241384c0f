//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// patience is for what comes for certain; it only bounds a test that has failed.
var patience = eventually.Scaled(5 * time.Minute)

// cluster is a lab with Kubernetes.
type cluster struct {
	*lab.Lab
	t *testing.T
}

func up(t *testing.T) cluster {
	t.Helper()
	return cluster{labtest.Up(t, lab.Config{Hosts: 2, Kubernetes: true}), t}
}

func (c cluster) run(name string, f func(c cluster)) {
	c.t.Helper()
	c.t.Run(name, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				for _, args := range [][]string{{"get", "pods", "-A", "-o", "wide"}, {"get", "events", "-A"}} {
					out, err := c.Kubectl(context.Background(), args...)
					t.Logf("%s\n%v", out, err)
				}
			}
		}()
		f(cluster{c.Lab, t})
	})
}

// kubectl runs kubectl and returns what it prints.
func (c cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.Kubectl(c.t.Context(), args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// apply makes or changes objects.
func (c cluster) apply(manifest string, args ...string) string {
	c.t.Helper()
	out, err := c.KubectlInput(c.t.Context(), manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c cluster) wait(what ...string) {
	c.t.Helper()
	c.kubectl(append([]string{"wait", "--timeout", patience.String()}, what...)...)
}

// nodesReady waits for all nodes, also those that have not come forward yet.
func (c cluster) nodesReady() {
	c.t.Helper()
	for _, h := range c.Hosts() {
		c.wait("--for=create", "node/"+h.Name)
		c.wait("--for=condition=Ready", "node/"+h.Name)
	}
}

func (c cluster) netctl(args ...string) string {
	c.t.Helper()
	out, err := c.Hosts()[0].Output(c.t.Context(), append([]string{"netctl"}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// pod runs a shell command in a pod and returns what it prints.
func (c cluster) pod(name, command string) string {
	c.t.Helper()
	out, err := c.Kubectl(c.t.Context(), "exec", name, "--", "sh", "-c", command)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// eventually asks until the answer is yes; said tells what it was at last.
func (c cluster) eventually(what string, ask func() (ok bool, said string)) {
	c.t.Helper()
	eventually.Succeeds(c.t, what, func() error {
		if ok, said := ask(); !ok {
			return errors.New(said)
		}
		return nil
	})
}

// tryNetctl runs netctl where an error is a reason to ask again.
func (c cluster) tryNetctl(args ...string) (string, error) {
	return c.Hosts()[0].Output(c.t.Context(), append([]string{"netctl"}, args...)...)
}

// endpoints counts the endpoints of a network.
func (c cluster) endpoints(tenant, network string) int {
	c.t.Helper()
	n, err := c.tryEndpoints(tenant, network)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// tryEndpoints is endpoints where an error is a reason to ask again.
func (c cluster) tryEndpoints(tenant, network string) (int, error) {
	var n struct {
		Oper struct {
			NumEndpoints int `json:"numEndpoints"`
		}
	}
	out, err := c.tryNetctl("net", "inspect", "-t", tenant, network)
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		return 0, fmt.Errorf("%w in %s", err, out)
	}
	return n.Oper.NumEndpoints, nil
}

// podIPs are the addresses of the pods with a label, by name.
func (c cluster) podIPs(label string) map[string]string {
	c.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(c.kubectl("get", "pods", "-l", label, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}`)) {
		if name, ip, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name] = ip
		}
	}
	return out
}
