package systemtests

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
)

// TestDockerRandomOperations does what users do to containers and networks, on two hosts
// at once, while daemons are killed and started again. In quiet rounds every
// operation must succeed; no address is ever held twice; in the end Engines, netmaster,
// switches and hosts agree, and everybody reaches everybody.
//
// CONTIV_SEED repeats a run, as far as the machine lets it; CONTIV_LONG does 200
// operations with each Engine.
func TestDockerRandomOperations(t *testing.T) {
	for i, version := range engines() {
		t.Run("Engine "+version, func(t *testing.T) {
			seed, rounds := uint64(1), 9
			if long() {
				seed, rounds = rand.Uint64(), 50
			}
			if text := os.Getenv("CONTIV_SEED"); text != "" {
				var err error
				if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("CONTIV_SEED=%d", seed)
			c := dockers{up(t, lab.Config{Hosts: 2, Masters: 2, Store: lab.StoreEtcd, Docker: version, Relay: true})}
			c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
			c.netctl("net", "create", "back", "--subnet=30.1.1.0/24")
			c.netctl("group", "create", "front", "web")
			for _, h := range c.Hosts() {
				c.networks(h.Name, "front", "back", "web")
			}
			r := &randomUser{dockers: c, steps: rand.New(rand.NewPCG(seed, 0)), names: []string{"front", "back", "web"}, broken: map[string]bool{}}
			r.victims = r.steps.Perm(len(victims()))
			r.ended = 3 * i // each Engine's first ones are others
			for i := range rounds {
				if r.round(i); t.Failed() {
					return
				}
			}
			r.agrees()
			if t.Failed() {
				return
			}
			for _, h := range c.Hosts() {
				if ids := strings.Fields(c.docker(h.Name, "ps", "-aq")); len(ids) > 0 {
					c.docker(h.Name, append([]string{"rm", "-f"}, ids...)...)
				}
			}
			r.agrees()
		})
	}
}

// randomUser does things at random.
type randomUser struct {
	dockers
	steps *rand.Rand
	names []string // of docker networks
	made  int      // containers and networks so far
	// broken are containers in whose operation an Engine was ended. Some Engines cannot
	// start them any more, whatever the network.
	broken map[string]bool
	// victims are the daemons that are ended, in turn, ended of them so far.
	victims []int
	ended   int
}

func victims() []string {
	return []string{"netplugin", "netmaster", "docker", "docker-relay", "ovs", "etcd"}
}

// operation is one thing to do; what names it in errors.
type operation struct {
	what string
	run  func() error
}

// round does two operations on each host at the same time and, now and then, ends a
// daemon meanwhile.
func (r *randomUser) round(number int) {
	r.t.Helper()
	all, err := r.everywhere()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, both := range twice(all) {
		r.t.Error(both)
	}
	if number%5 == 4 && r.steps.IntN(2) == 0 {
		r.changeNetworks(all)
		return
	}
	busy := map[string]bool{} // containers something is done to
	var ops []operation
	for _, h := range r.Hosts() {
		ops = append(ops, r.pick(h.Name, all, busy), r.pick(h.Name, all, busy))
	}
	var trouble *operation
	if number%3 == 2 {
		trouble = r.trouble()
		ops = append(ops, *trouble)
	}
	failed := make([]error, len(ops))
	took := make([]time.Duration, len(ops))
	var wg sync.WaitGroup
	for i, op := range ops {
		wg.Go(func() {
			began := time.Now()
			failed[i] = op.run()
			took[i] = time.Since(began).Round(time.Millisecond)
		})
	}
	wg.Wait()
	for i, op := range ops {
		r.t.Logf("round %d: %s: %s %v", number, op.what, took[i], failed[i])
		if failed[i] != nil && (trouble == nil || op.what == trouble.what) {
			r.t.Errorf("round %d: %s: %v", number, op.what, failed[i])
		}
	}
	if trouble != nil {
		r.calm()
	}
	for i, op := range ops {
		for _, d := range all {
			if failed[i] != nil && slices.Contains(strings.Fields(op.what), d.Name) {
				r.broken[d.Name] = true
			}
		}
	}
}

// calm waits until every daemon says it is ready, and the Engines have their networks.
func (r *randomUser) calm() {
	r.t.Helper()
	for _, h := range r.Hosts() {
		for _, d := range []string{"etcd", "netmaster", "netplugin", "docker"} {
			r.ready(h.Name, d)
		}
	}
	for _, h := range r.Hosts() {
		r.dockers.networks(h.Name, slices.Clone(r.names)...)
	}
}

// trouble ends a daemon somewhere, a moment from now, and starts it again.
func (r *randomUser) trouble() *operation {
	daemon := victims()[r.victims[r.ended%len(r.victims)]]
	r.ended++
	signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[r.steps.IntN(3)]
	host := r.Hosts()[r.steps.IntN(2)]
	if daemon == "netmaster" && r.leader("host1") != "" {
		host, _ = r.Host(r.leader("host1"))
	}
	soon := time.Duration(r.steps.IntN(600)) * time.Millisecond
	away := time.Duration(r.steps.IntN(3)) * time.Second
	return &operation{
		fmt.Sprintf("%s to %s on %s after %s, away for %s", signal, daemon, host.Name, soon, away),
		func() error {
			time.Sleep(soon)
			if daemon == "ovs" {
				return host.RestartDaemon(r.t.Context(), daemon, signal)
			}
			if err := host.StopDaemon(r.t.Context(), daemon, signal); err != nil {
				return err
			}
			time.Sleep(away)
			return host.StartDaemon(r.t.Context(), daemon)
		},
	}
}

// changeNetworks makes a network or removes one that nobody uses, and waits for the
// Engines to have followed.
func (r *randomUser) changeNetworks(all []dockerContainer) {
	r.t.Helper()
	used := map[string]bool{"front": true, "back": true, "web": true}
	for _, d := range all {
		for _, name := range d.networks() {
			used[name] = true
		}
	}
	i := slices.IndexFunc(r.names, func(name string) bool { return !used[name] })
	if i >= 0 {
		r.t.Logf("net rm %s", r.names[i])
		r.netctl("net", "rm", r.names[i])
		r.names = slices.Delete(r.names, i, i+1)
	} else {
		r.made++
		name := fmt.Sprint("x", r.made)
		r.t.Logf("net create %s", name)
		r.netctl("net", "create", name, fmt.Sprintf("--subnet=40.%d.1.0/24", r.made), fmt.Sprintf("--gateway=40.%d.1.254", r.made))
		r.names = append(r.names, name)
	}
	for _, h := range r.Hosts() {
		r.dockers.networks(h.Name, slices.Clone(r.names)...)
	}
}

// pick chooses what to do on a host.
func (r *randomUser) pick(host string, all []dockerContainer, busy map[string]bool) operation {
	var here []dockerContainer
	for _, d := range all {
		if d.host == host && !busy[d.Name] {
			here = append(here, d)
		}
	}
	do := func(args ...string) operation {
		return operation{fmt.Sprintf("%s: docker %s", host, strings.Join(args, " ")), func() error {
			_, err := r.try(host, args...)
			return err
		}}
	}
	if len(here) < 3 || len(here) < 8 && r.steps.IntN(3) == 0 {
		return r.create(host, do)
	}
	d := here[r.steps.IntN(len(here))]
	busy[d.Name] = true
	if r.broken[d.Name] {
		return do("rm", "-f", d.Name)
	}
	if strings.HasPrefix(d.Name, "bad") {
		return []operation{do("rm", "-f", d.Name), fails(do("start", d.Name))}[r.steps.IntN(2)]
	}
	if !d.runs() {
		return do([][]string{{"start", d.Name}, {"restart", "-t", "0", d.Name}, {"rm", "-f", d.Name}}[r.steps.IntN(3)]...)
	}
	switch r.steps.IntN(8) {
	case 0:
		return do("rm", "-f", d.Name)
	case 1:
		return do("stop", "-t", "0", d.Name)
	case 2:
		return do("kill", d.Name)
	case 3:
		return do("restart", "-t", "0", d.Name)
	case 4, 5:
		has := d.networks()
		free := slices.DeleteFunc(slices.Clone(r.names), func(name string) bool {
			// A container cannot be in one subnet twice.
			return slices.Contains(has, name) || name == "web" && slices.Contains(has, "front") || name == "front" && slices.Contains(has, "web")
		})
		if len(has) > 1 && r.steps.IntN(2) == 0 || len(free) == 0 {
			return do("network", "disconnect", has[r.steps.IntN(len(has))], d.Name)
		}
		return do("network", "connect", free[r.steps.IntN(len(free))], d.Name)
	}
	for _, peer := range all {
		for _, name := range peer.networks() {
			if at, ok := d.NetworkSettings.Networks[name]; ok && at.IPAddress != "" && peer.runs() && peer.Name != d.Name && !busy[peer.Name] {
				busy[peer.Name] = true
				return do("exec", d.Name, "sh", "-c", reach(peer.NetworkSettings.Networks[name].IPAddress))
			}
		}
	}
	return do("exec", d.Name, "true")
}

// create starts a container; some have an address of their own choice, come back with
// the Engine, or fail.
func (r *randomUser) create(host string, do func(...string) operation) operation {
	r.made++
	network := r.names[r.steps.IntN(len(r.names))]
	name, bad := fmt.Sprint("c", r.made), r.steps.IntN(6) == 0
	if bad {
		name = "bad" + name
	}
	args := []string{"run", "-d", "--name", name, "--network", network}
	if r.steps.IntN(3) == 0 {
		args = append(args, "--restart", "always")
	}
	if network == "front" && r.steps.IntN(3) == 0 {
		args = append(args, "--ip", fmt.Sprintf("20.1.1.%d", 100+r.made%100))
	}
	if bad {
		return fails(do(append(args, lab.Image, "/no/such/program")...))
	}
	return do(append(args, lab.Image, "sh", "-c", idle)...)
}

// fails turns an operation round: it must not succeed.
func fails(op operation) operation {
	return operation{op.what, func() error {
		if op.run() == nil {
			return errors.New("a program that does not exist runs")
		}
		return nil
	}}
}

// agrees holds that all sides agree, after a while, and that containers reach each other.
func (r *randomUser) agrees() {
	r.t.Helper()
	r.calm()
	r.agree()
	containers, err := r.everywhere()
	if err != nil {
		r.t.Fatal(err)
	}
	pings := 0
	for _, from := range containers {
		script := "true"
		for _, to := range containers {
			for name, at := range to.NetworkSettings.Networks {
				if mine, ok := from.NetworkSettings.Networks[name]; ok && from.runs() && to.runs() && mine.IPAddress != at.IPAddress {
					script += " && " + reach(at.IPAddress)
					pings++
				}
			}
		}
		if script != "true" {
			if out, err := r.try(from.host, "exec", from.Name, "sh", "-c", script); err != nil {
				r.t.Errorf("%s on %s does not reach all others: %v\n%s", from.Name, from.host, err, tail(out))
			}
		}
	}
	r.t.Logf("%d pings", pings)
}
