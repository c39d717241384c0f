package systemtests

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// dockerContainer is a container as its Engine tells of it.
type dockerContainer struct {
	ID, Name string
	State    struct{ Status string }
	// NetworkSettings has the container's networks by name.
	NetworkSettings struct {
		Networks map[string]dockerAttachment
	}
	host string
}

// dockerAttachment is empty but for NetworkID while the container does not run.
type dockerAttachment struct{ NetworkID, EndpointID, IPAddress, GlobalIPv6Address, MacAddress string }

func (d dockerContainer) runs() bool { return d.State.Status == "running" }

// networks lists the networks the container belongs to.
func (d dockerContainer) networks() []string {
	var names []string
	for name := range d.NetworkSettings.Networks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inspect asks the Engine of a host about all its containers. One that goes meanwhile is
// left out.
func (c dockers) inspect(host string) (out []dockerContainer, err error) {
	c.t.Helper()
	ids, err := c.try(host, "ps", "-aq")
	if err != nil || ids == "" {
		return nil, err
	}
	text, err := c.try(host, append([]string{"inspect"}, strings.Fields(ids)...)...)
	if jsonErr := json.Unmarshal([]byte(text), &out); jsonErr != nil {
		return nil, fmt.Errorf("%s: docker inspect: %w, %w", host, err, jsonErr)
	}
	for i := range out {
		out[i].host, out[i].Name = host, strings.TrimPrefix(out[i].Name, "/")
	}
	return out, nil
}

// everywhere is inspect on all hosts.
func (c dockers) everywhere() (all []dockerContainer, err error) {
	c.t.Helper()
	for _, h := range c.Hosts() {
		some, err := c.inspect(h.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// stored reads what is below a prefix of the store, which must be a separate etcd: values
// by the rest of their keys.
func stored[T any](c cluster, prefix string) (map[string]T, error) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
	ask, err := json.Marshal(map[string]string{"key": encode(prefix), "range_end": encode(end)})
	if err != nil {
		return nil, err
	}
	m := c.Masters()[0]
	req, err := http.NewRequestWithContext(context.WithoutCancel(c.t.Context()), http.MethodPost, "http://"+m.ControlIP()+":2379/v3/kv/range", bytes.NewReader(ask))
	if err != nil {
		return nil, err
	}
	resp, err := m.HTTP().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		KVs []struct{ Key, Value []byte }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read the store: %s: %w", resp.Status, err)
	}
	out := map[string]T{}
	for _, kv := range answer.KVs {
		var v T
		if err := json.Unmarshal(kv.Value, &v); err != nil {
			return nil, fmt.Errorf("%s in the store: %w", kv.Key, err)
		}
		out[strings.TrimPrefix(string(kv.Key), prefix)] = v
	}
	return out, nil
}

// twice finds addresses that two running containers hold.
func twice(all []dockerContainer) []string {
	var found []string
	holder := map[string]string{}
	for _, d := range all {
		for name, at := range d.NetworkSettings.Networks {
			for _, ip := range []string{at.IPAddress, at.GlobalIPv6Address} {
				if !d.runs() || ip == "" || name == "bridge" {
					continue
				}
				if other, ok := holder[ip]; ok {
					found = append(found, fmt.Sprintf("%s is held by %s and by %s on %s", ip, other, d.Name, d.host))
				}
				holder[ip] = d.Name + " on " + d.host
			}
		}
	}
	return found
}

// differences compares what the Engines, netmaster, the switches and the hosts have. Only
// networks of tenant default are understood. Addresses that are reserved and not in use
// are returned separately: netmaster takes them back after ten minutes.
func (c dockers) differences() (all, reserved []string, err error) {
	c.t.Helper()
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	containers, err := c.everywhere()
	if err != nil {
		return nil, nil, err
	}
	for _, both := range twice(containers) {
		add("%s", both)
	}
	records, err := stored[state.Endpoint](c.cluster, state.EndpointRoot)
	if err != nil {
		return nil, nil, err
	}
	groups, err := stored[state.EndpointGroup](c.cluster, state.GroupRoot)
	if err != nil {
		return nil, nil, err
	}
	nets, err := stored[state.Network](c.cluster, state.NetworkRoot)
	if err != nil {
		return nil, nil, err
	}
	claims, err := stored[state.AddressClaim](c.cluster, state.IPAMRoot)
	if err != nil {
		return nil, nil, err
	}

	placed := map[string]bool{} // endpoint ids that a container accounts for
	for _, d := range containers {
		for name, at := range d.NetworkSettings.Networks {
			network, group := name, ""
			if g, ok := groups[name+":default"]; ok {
				network, group = g.NetworkName, name
			}
			if !d.runs() || at.EndpointID == "" {
				continue
			}
			id := state.EndpointID(state.NetworkID(network, "default"), at.EndpointID)
			placed[id] = true
			rec, ok := records[id]
			got := fmt.Sprintf("%s %s %s %s %s", rec.IPAddress, rec.IPv6Address, rec.MacAddress, rec.HomingHost, rec.ServiceName)
			want := fmt.Sprintf("%s %s %s %s %s", at.IPAddress, at.GlobalIPv6Address, at.MacAddress, d.host, group)
			if !ok {
				add("container %s on %s has no endpoint in %s", d.Name, d.host, name)
			} else if got != want {
				add("container %s in %s: netmaster has %q, the Engine %q", d.Name, name, got, want)
			}
		}
	}
	for id, rec := range records {
		if !placed[id] {
			add("no container has endpoint %s of %s", id, rec.HomingHost)
		}
	}
	for at, claim := range claims {
		id, ofEndpoint := strings.CutPrefix(claim.Owner, "endpoint/")
		if _, there := records[id]; ofEndpoint && !there {
			add("address %s belongs to %s, which is not there", at, claim.Owner)
		}
		if strings.HasPrefix(claim.Owner, "reserved/") {
			reserved = append(reserved, at+" "+claim.Owner)
		}
	}

	want := []string{}
	for _, n := range nets {
		want = append(want, n.NetworkName)
	}
	for _, g := range groups {
		want = append(want, g.GroupName)
	}
	slices.Sort(want)
	for _, h := range c.Hosts() {
		out, err := c.try(h.Name, "network", "ls", "--filter", "driver=netplugin", "--format", "{{.Name}}")
		if err != nil {
			return nil, nil, err
		}
		got := strings.Fields(out)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			add("docker networks on %s: %v, want %v", h.Name, got, want)
		}
		more, err := c.portDifferences(h, records)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, more...)
	}
	slices.Sort(all)
	return all, reserved, nil
}

// portDifferences compares a host's ports and links with the records of its endpoints.
func (c dockers) portDifferences(h *lab.Host, records map[string]state.Endpoint) (all []string, err error) {
	var want, got, names []string
	for id, rec := range records {
		if rec.HomingHost == h.Name {
			want = append(want, id)
		}
	}
	out, err := h.Output(context.WithoutCancel(c.t.Context()), "sh", "-ec", `ovs-vsctl --bare --columns=name,external_ids find interface external_ids:contiv-owner=netplugin external_ids:endpoint-id!=uplinkPort`)
	if err != nil {
		return nil, err
	}
	name := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		for _, pair := range strings.Fields(line) {
			if id, ok := strings.CutPrefix(pair, "endpoint-id="); ok && strings.HasPrefix(name, "vvport") {
				got, names = append(got, id), append(names, name)
			}
		}
		if line != "" && !strings.Contains(line, "=") {
			name = line
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		all = append(all, fmt.Sprintf("ports of %s: %v, want %v", h.Name, got, want))
	}
	out, err = h.Output(context.WithoutCancel(c.t.Context()), "ls", "/sys/class/net")
	if err != nil {
		return nil, err
	}
	for _, link := range strings.Fields(out) {
		if strings.HasPrefix(link, "vport") {
			all = append(all, fmt.Sprintf("link %s on %s is in no container", link, h.Name))
		}
		if strings.HasPrefix(link, "vvport") && !slices.Contains(names, link) {
			all = append(all, fmt.Sprintf("link %s on %s is no port", link, h.Name))
		}
	}
	return all, nil
}

// agree waits until there are no differences.
func (c dockers) agree() {
	c.t.Helper()
	began, last := time.Now(), ""
	for deadline := began.Add(eventually.Scaled(5 * time.Minute)); ; time.Sleep(200 * time.Millisecond) {
		all, reserved, err := c.differences()
		took := time.Since(began).Round(time.Millisecond)
		if err == nil && len(all) == 0 {
			c.t.Logf("agreed after %s; reserved, and taken back later: %v", took, reserved)
			return
		}
		if text := strings.Join(all, "\n"); text != last {
			last = text
			c.t.Logf("after %s: %v\n%s", took, err, text)
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("no agreement: %v\n%s", err, strings.Join(all, "\n"))
		}
	}
}
