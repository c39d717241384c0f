//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// seedEnv and stepsEnv repeat a run of TestRandomOperations, or make it longer.
const (
	seedEnv  = "CONTIV_SEED"
	stepsEnv = "CONTIV_STEPS"
)

// TestRandomOperations makes and removes pods at random while the daemons of the nodes
// are killed, and expects that no two containers ever have one address and that, once
// everything is back, everybody has the same pods and nothing else.
func TestRandomOperations(t *testing.T) {
	steps, pause, seed := 40, 300*time.Millisecond, uint64(time.Now().UnixNano())
	if os.Getenv("CONTIV_LONG") != "" {
		steps, pause = 200, time.Second
	}
	if n, err := strconv.Atoi(os.Getenv(stepsEnv)); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%d operations; repeat them with %s=%d %s=%d", steps, seedEnv, seed, stepsEnv, steps)
	containerds := []string{lab.ContainerdPacked, lab.ContainerdBuilt}
	c := cluster{labtest.Up(t, lab.Config{Hosts: 2, Masters: 2, Store: lab.StoreEtcd, Kubernetes: true, Containerd: containerds}), t}
	m := &monkey{cluster: c, rnd: rand.New(rand.NewPCG(seed, 0)), pause: pause, rest: c.api(), down: map[daemon]int{}}
	c.run("at random", func(c cluster) {
		m.cluster = c
		m.start()
		for n := range steps {
			m.step(n)
		}
		m.restore()
		// Agents that start look for what others have left behind.
		for _, h := range c.Hosts() {
			if err := h.RestartDaemon(c.t.Context(), "netplugin", syscall.SIGKILL); err != nil {
				c.t.Fatal(err)
			}
		}
	})
	c.run("everybody has the same pods", func(c cluster) {
		m.cluster = c
		c.settled()
		m.uniqueAddresses()
	})
	c.run("nothing is left of them", func(c cluster) {
		m.cluster = c
		m.scale(0)
		for _, p := range m.pods() {
			m.remove(p, 0)
		}
		c.eventually("no pods", func() (bool, string) { n := len(m.pods()); return n == 0, fmt.Sprintf("%d pods", n) })
		c.settled()
	})
}

// daemon is one of a host.
type daemon struct{ host, name string }

// monkey does something to a cluster.
type monkey struct {
	cluster
	rnd   *rand.Rand
	pause time.Duration // between steps, at most
	rest  rest.Interface
	made  int            // pods so far
	down  map[daemon]int // killed daemons, with the steps until they are back
}

// victims are the daemons that are killed, in the order in which they can start again.
func victims() []string {
	return []string{"ovs-vswitchd", "netmaster", "netplugin", "containerd", "kubelet"}
}

const (
	mostPods = 16
	// controlled is the replication controller that is scaled.
	controlled = "many"
)

// start prepares what the steps work with.
func (m *monkey) start() {
	m.t.Helper()
	if _, err := m.NetctlOutput(m.t.Context(), "net", "create", "-s", "20.1.0.0/16", "-g", "20.1.0.1", "default-net"); err != nil && !strings.Contains(err.Error(), "exists") {
		m.t.Fatal(err)
	}
	m.nodesReady()
	m.wait("--for=create", "serviceaccount/default")
	labels := map[string]string{"app": controlled}
	none := int32(0)
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: controlled},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: &none, Selector: labels,
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: sleeping("")},
		},
	}
	if err := m.rest.Post().Namespace("default").Resource("replicationcontrollers").Body(rc).Do(m.t.Context()).Error(); err != nil {
		m.t.Fatal(err)
	}
}

// sleeping is a pod that does nothing, on any node or on the one named.
func sleeping(node string) corev1.PodSpec {
	now := int64(0)
	return corev1.PodSpec{
		NodeName: node, TerminationGracePeriodSeconds: &now,
		// Nodes whose daemons are killed are not ready now and then.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: lab.KubeImage, Command: []string{"sleep", "1000000"}}},
	}
}

// step does one thing.
func (m *monkey) step(n int) {
	m.t.Helper()
	time.Sleep(time.Duration(m.rnd.Int64N(int64(m.pause)))) // operations meet others at every stage
	for d := range m.down {
		if m.down[d]--; m.down[d] <= 0 {
			m.restore()
			break
		}
	}
	living := m.living()
	switch p := m.rnd.IntN(100); {
	case p < 35 && len(living) < mostPods:
		m.create([]string{"", "host1", "host2"}[m.rnd.IntN(3)])
	case p < 50 && len(living) > 0:
		m.remove(living[m.rnd.IntN(len(living))], 1)
	case p < 65 && len(living) > 0:
		m.remove(living[m.rnd.IntN(len(living))], 0)
	case p < 75:
		m.scale(m.rnd.IntN(6))
	default:
		host := m.Hosts()[m.rnd.IntN(2)]
		m.kill(host, victims()[m.rnd.IntN(len(victims()))])
	}
	if n%8 == 7 {
		m.uniqueAddresses()
	}
}

func (m *monkey) create(node string) {
	m.t.Helper()
	m.made++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", m.made)}, Spec: sleeping(node)}
	if err := m.rest.Post().Namespace("default").Resource("pods").Body(p).Do(m.t.Context()).Error(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("create %s on %q", p.Name, node)
}

// remove removes a pod; without seconds of grace, its kubelet is not waited for.
func (m *monkey) remove(p corev1.Pod, grace int64) {
	m.t.Helper()
	err := m.rest.Delete().Namespace(p.Namespace).Resource("pods").Name(p.Name).Body(&metav1.DeleteOptions{GracePeriodSeconds: &grace}).Do(m.t.Context()).Error()
	m.t.Logf("remove %s, on %s, with address %q, in %d s: %v", p.Name, p.Spec.NodeName, p.Status.PodIP, grace, err)
}

func (m *monkey) scale(n int) {
	m.t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
	if err := m.rest.Patch(types.MergePatchType).Namespace("default").Resource("replicationcontrollers").Name(controlled).Body(body).Do(m.t.Context()).Error(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("scale to %d", n)
}

// kill kills a daemon for some steps. The netmaster that leads is the one killed.
func (m *monkey) kill(h *lab.Host, name string) {
	m.t.Helper()
	d := daemon{h.Name, name}
	if _, already := m.down[d]; already {
		return
	}
	if err := h.StopDaemon(m.t.Context(), name, syscall.SIGKILL); err != nil {
		m.t.Fatal(err)
	}
	m.down[d] = m.rnd.IntN(5)
	m.t.Logf("kill %s of %s for %d steps", name, h.Name, m.down[d])
}

// restore starts what was killed.
func (m *monkey) restore() {
	m.t.Helper()
	for _, name := range victims() {
		for _, h := range m.Hosts() {
			d := daemon{h.Name, name}
			if _, ok := m.down[d]; !ok {
				continue
			}
			if err := h.StartDaemon(m.t.Context(), name); err != nil {
				m.t.Fatal(err)
			}
			delete(m.down, d)
			m.t.Logf("%s of %s is back", name, h.Name)
		}
	}
}

func (m *monkey) pods() []corev1.Pod {
	m.t.Helper()
	all, err := listPods(m.t.Context(), m.rest)
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// living are the pods that are not about to go.
func (m *monkey) living() []corev1.Pod {
	var out []corev1.Pod
	for _, p := range m.pods() {
		if p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

// uniqueAddresses looks into the containers of all hosts. They are not looked into at
// once, so that an address may seem to be in two places; a second look tells.
func (m *monkey) uniqueAddresses() {
	m.t.Helper()
	first := m.twice()
	if len(first) == 0 {
		return
	}
	for address, where := range m.twice() {
		if first[address] == where {
			m.t.Errorf("address %s is in %s", address, where)
		}
	}
}

// twice lists the addresses that are in more than one place, with the places.
func (m *monkey) twice() map[string]string {
	m.t.Helper()
	places := map[string][]string{}
	for _, h := range m.Hosts() {
		for netns, address := range m.inside(m.t.Context(), h) {
			places[address] = append(places[address], h.Name+":"+netns)
		}
	}
	out := map[string]string{}
	for address, all := range places {
		if len(all) > 1 {
			out[address] = strings.Join(all, " and ")
		}
	}
	return out
}

// inside are the addresses of a host's containers, by namespace. Namespaces that go
// meanwhile are left out.
func (m *monkey) inside(ctx context.Context, h *lab.Host) map[string]string {
	m.t.Helper()
	out, err := h.Output(ctx, "sh", "-c", `
for n in /run/netns/*; do
	[ -e "$n" ] || continue
	echo "${n##*/} $(nsenter --net="$n" ip -4 -o addr show dev eth0 2>/dev/null | awk '{print $4}')"
done`)
	if err != nil {
		m.t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 {
			all[f[0]] = f[1]
		}
	}
	return all
}
