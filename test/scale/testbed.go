package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/cliconf"
)

// Addresses of the netmasters and of the store, among those that are local.
const (
	master1   = "172.20.255.1"
	master2   = "172.20.255.2"
	storeHost = "172.20.255.3"
)

// testbed is a netmaster, its store and the agents, as processes of this machine.
type testbed struct {
	o   options
	dir string

	store   *daemon // nil: in netmaster
	masters [2]*daemon
	agents  []*agents
	client  *client.Client
}

// up starts the control plane.
func up(ctx context.Context, o options) (_ *testbed, err error) {
	t := &testbed{o: o}
	if t.dir, err = os.MkdirTemp(o.dir, "scale-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; %s", err, t.logs())
			t.down()
		}
	}()
	return t, t.start(ctx)
}

// start starts the store, if there is one of its own, and then the netmasters.
func (c *testbed) start(ctx context.Context) (err error) {
	if c.o.store != cliconf.StoreEmbedded {
		if err := c.startStore(ctx); err != nil {
			return err
		}
	}
	if err := c.startMaster(ctx, 0); err != nil {
		return err
	}
	urls := []string{"http://" + master1 + ":9999"}
	if c.store != nil { // another one, which takes over
		if err := c.startMaster(ctx, 1); err != nil {
			return err
		}
		urls = append(urls, "http://"+master2+":9999")
	}
	c.client, err = client.New(client.Config{URLs: urls, Patience: time.Minute, Timeout: 5 * time.Minute})
	return err
}

// down ends everything.
func (c *testbed) down() {
	for _, a := range c.agents {
		a.kill()
	}
	for _, d := range []*daemon{c.masters[0], c.masters[1], c.store} {
		if d != nil {
			d.kill()
		}
	}
	if c.client != nil {
		c.client.Close()
	}
	_ = os.RemoveAll(c.dir)
}

// startStore starts the store of its own, and again after it was killed.
func (c *testbed) startStore(ctx context.Context) (err error) {
	data := filepath.Join(c.dir, "store")
	if c.o.store == cliconf.StoreConsul {
		c.store, err = start(logFile(c.dir, "consul"), exec.Command(
			lab.ConsulBinary(), "agent", "-server", "-bootstrap-expect=1", "-node", "store", "-data-dir", data, "-bind", storeHost, "-client", storeHost, "-log-level", "warn",
			"-hcl", "disable_update_check = true", "-hcl", "performance { raft_multiplier = 1 }", "-hcl", "limits { http_max_conns_per_client = 10000 }",
			"-hcl", "ports { dns = -1, grpc = -1, grpc_tls = -1, serf_wan = -1 }",
		))
		if err != nil {
			return err
		}
		return c.store.ready(ctx, "http://"+storeHost+":8500/v1/kv/?keys&consistent") // needs a leader
	}
	client, peer := "http://"+storeHost+":2379", "http://"+storeHost+":2380"
	c.store, err = start(logFile(c.dir, "etcd"), exec.Command(
		"etcd", "--name", "store", "--data-dir", data, "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "store="+peer, "--initial-cluster-state", "new",
		"--quota-backend-bytes", "8589934592",
	))
	if err != nil {
		return err
	}
	return c.store.ready(ctx, client+"/health")
}

// startMaster starts a netmaster, and again after it was killed.
func (c *testbed) startMaster(ctx context.Context, i int) (err error) {
	address := [2]string{master1, master2}[i]
	args := []string{
		"--mode", c.o.mode, "--netmode", "vxlan", "--fwdmode", "routing", "--external-address", address + ":9999", "--internal-address", address + ":9999",
	}
	switch c.o.store {
	case cliconf.StoreEmbedded:
		args = append(args, "--store", "embedded", "--store-dir", filepath.Join(c.dir, "store"), "--store-listen", address+":2379")
	case cliconf.StoreConsul:
		args = append(args, "--consul-endpoints", c.storeURL())
	default:
		args = append(args, "--etcd-endpoints", c.storeURL())
	}
	if c.masters[i], err = start(logFile(c.dir, "netmaster"), exec.Command(filepath.Join(c.o.bin, "netmaster"), args...)); err != nil {
		return err
	}
	return c.masters[i].ready(ctx, "http://"+address+":9999/readyz")
}

// storeURL is where agents find the store.
func (c *testbed) storeURL() string {
	switch c.o.store {
	case cliconf.StoreEmbedded:
		return "http://" + master1 + ":2379"
	case cliconf.StoreConsul:
		return "http://" + storeHost + ":8500"
	}
	return "http://" + storeHost + ":2379"
}

// agents is a process with agents.
type agents struct {
	*daemon
	began time.Time
	mu    sync.Mutex
	ask   *json.Encoder
	tell  *json.Decoder
}

// startAgents starts n agents from host first on.
func (c *testbed) startAgents(first, n int, full bool) (*agents, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kind := cliconf.StoreEtcd
	if c.o.store == cliconf.StoreConsul {
		kind = cliconf.StoreConsul
	}
	text, err := json.Marshal(agentsConfig{Store: kind, Endpoints: []string{c.storeURL()}, First: first, Hosts: n, Full: full, Together: 4})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentsVariable+"="+string(text))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.Stdout = w
	a := &agents{began: time.Now(), ask: json.NewEncoder(in), tell: json.NewDecoder(out)}
	if a.daemon, err = start(logFile(c.dir, "agents"), cmd); err != nil {
		return nil, err
	}
	return a, nil
}

// question asks and waits for the answer.
func (a *agents) question(ctx context.Context, q question) (out answer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer context.AfterFunc(ctx, a.kill)() // or it might wait for ever
	if err := a.ask.Encode(q); err != nil {
		return out, errors.Join(context.Cause(ctx), err)
	}
	if err := a.tell.Decode(&out); err != nil {
		return out, errors.Join(context.Cause(ctx), fmt.Errorf("agents: %w", err))
	}
	return out, nil
}

// question asks all agents, and joins what they answer.
func (c *testbed) question(ctx context.Context, q question) (answer, error) {
	all := make([]answer, len(c.agents))
	g, ctx := errgroup.WithContext(ctx)
	for i, a := range c.agents {
		g.Go(func() (err error) {
			all[i], err = a.question(ctx, q)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return answer{}, err
	}
	sum := answer{Seen: make([]int64, len(q.Revisions)), Sent: make([]int64, len(q.Revisions))}
	for _, a := range all {
		for i, at := range a.Seen {
			sum.Seen[i] = max(sum.Seen[i], at)
		}
		for i, at := range a.Sent {
			sum.Sent[i] = max(sum.Sent[i], at)
		}
		sum.Work = append(sum.Work, a.Work...)
		sum.Flows, sum.Messages = max(sum.Flows, a.Flows), max(sum.Messages, a.Messages)
	}
	return sum, nil
}
