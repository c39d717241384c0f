//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/kubeapi"
	"github.com/contiv/netplugin/test/lab"
)

// api is a client of the group core/v1, as the cluster's administrator: for what is asked
// too often to run kubectl for.
func (c cluster) api() rest.Interface {
	c.t.Helper()
	server, token := c.KubeAdmin()
	client, err := kubeapi.NewClient(&rest.Config{
		Host: server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Dial: c.Hosts()[0].Dial, QPS: -1,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return client.Core()
}

// listPods lists the pods of all namespaces.
func listPods(ctx context.Context, api rest.Interface) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := api.Get().Resource("pods").Do(ctx).Into(&list)
	return list.Items, err
}

// inventory is what one host has of pods.
type inventory struct {
	Ports   []string // of Open vSwitch, by container
	Links   []string // of this host, that are ends of containers' cables
	Netns   []string // that a runtime has made
	Records []string // of the runtime about networks
	Notes   []string // of deletions
}

// inventoryScript prints what each line is and its name.
const inventoryScript = `
for id in $(ovs-vsctl --bare --columns=external_ids list Interface | grep -o 'contiv-container=[^ ]*'); do echo "port ${id#*=}"; done
for l in /sys/class/net/vvport*; do [ -e "$l" ] && echo "link ${l##*/}"; done
for n in /run/netns/*; do [ -e "$n" ] && echo "netns ${n##*/}"; done
for r in /var/lib/cni/results/contiv-net-*; do [ -e "$r" ] && echo "record ${r##*/}"; done
for n in /run/contiv/deletions/*; do [ -e "$n" ] && echo "note ${n##*/}"; done
true`

func takeInventory(ctx context.Context, h *lab.Host) (inventory, error) {
	out, err := h.Output(ctx, "sh", "-c", inventoryScript)
	if err != nil {
		return inventory{}, err
	}
	var i inventory
	lists := map[string]*[]string{"port": &i.Ports, "link": &i.Links, "netns": &i.Netns, "record": &i.Records, "note": &i.Notes}
	for line := range strings.Lines(out) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if list, ok := lists[kind]; ok {
			*list = append(*list, name)
		}
	}
	return i, nil
}

// settled waits until all pods run and everybody has the same of them: netmaster their
// addresses, and each host their ports, cables, namespaces and records, and nothing else.
func (c cluster) settled() {
	c.t.Helper()
	api := c.api()
	c.eventually("everybody has the same pods", func() (bool, string) {
		why, err := c.differences(c.t.Context(), api)
		return why == "" && err == nil, fmt.Sprint(why, err)
	})
}

// differences tells how pods and what there is of them differ, or "".
func (c cluster) differences(ctx context.Context, api rest.Interface) (string, error) {
	all, err := listPods(ctx, api)
	if err != nil {
		return "", err
	}
	wanted, onNode := map[string]string{}, map[string]int{}
	for _, p := range all {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || p.Status.PodIP == "" {
			return fmt.Sprintf("pod %s on %s is %s, with address %q, deleted %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.PodIP, p.DeletionTimestamp), nil
		}
		if other, twice := wanted[p.Status.PodIP]; twice {
			return fmt.Sprintf("pods %s and %s both have %s", other, p.Name, p.Status.PodIP), nil
		}
		wanted[p.Status.PodIP] = p.Name
		onNode[p.Spec.NodeName]++
	}
	have, err := c.addresses(ctx)
	if err != nil {
		return "", err
	}
	if missing, extra := missingFrom(have, wanted), missingFrom(wanted, have); len(missing)+len(extra) > 0 {
		return fmt.Sprintf("netmaster lacks %v and has besides %v", missing, extra), nil
	}
	for _, h := range c.Hosts() {
		i, err := takeInventory(ctx, h)
		if err != nil {
			return "", err
		}
		for what, list := range map[string][]string{"ports": i.Ports, "links": i.Links, "namespaces": i.Netns, "records": i.Records} {
			if len(list) != onNode[h.Name] {
				return fmt.Sprintf("%s has %d pods and %d %s: %v", h.Name, onNode[h.Name], len(list), what, list), nil
			}
		}
		if len(i.Notes) > 0 {
			return fmt.Sprintf("%s has notes of deletions: %v", h.Name, i.Notes), nil
		}
	}
	return "", nil
}

// addresses are those of all endpoints of the default network, with their containers.
func (c cluster) addresses(ctx context.Context) (map[string]string, error) {
	out, err := c.NetctlOutput(ctx, "net", "inspect", "default-net")
	if err != nil {
		return nil, err
	}
	var n struct {
		Oper struct {
			Endpoints []struct {
				EndpointID string
				IPAddress  [2]string
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		return nil, fmt.Errorf("%w in %s", err, out)
	}
	all := map[string]string{}
	for _, e := range n.Oper.Endpoints {
		all[e.IPAddress[0]] = e.EndpointID
	}
	return all, nil
}

// missingFrom lists the entries of b whose keys a does not have.
func missingFrom(a, b map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[k]; !ok {
			out = append(out, k+" "+b[k])
		}
	}
	return out
}
