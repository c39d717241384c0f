package systemtests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/test/lab"
)

// event tells netmaster that a container starts with labels, or dies.
func (c cluster) event(kind string, container lab.Container, labels map[string]string) {
	c.t.Helper()
	body, err := json.Marshal(masterapi.UpdateEndpointRequest{
		Tenant: "default", Network: container.Network, EndpointID: container.ContainerID, ContainerID: container.ContainerID, Event: kind, Labels: labels,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	h := c.Masters()[0]
	resp, err := h.HTTP().Post("http://"+net.JoinHostPort(h.ControlIP(), "9999")+"/plugin/updateEndpoint", "application/json", bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		c.t.Fatalf("event %s of %s: %d %s", kind, container.Name, resp.StatusCode, text)
	}
}

// get reads JSON from a host.
func (c cluster) get(h *lab.Host, url string, v any) {
	c.t.Helper()
	resp, err := h.HTTP().Get(url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		c.t.Fatalf("%s: %v", url, err)
	}
}

// service is a service of the test with its addresses.
type service struct{ v4, v6 string }

// serviceWith reads a service of the default tenant, which has so many providers.
func (c cluster) serviceWith(name string, providers int) service {
	c.t.Helper()
	var records []state.ServiceLB
	c.get(c.Masters()[0], "http://"+net.JoinHostPort(c.Masters()[0].ControlIP(), "9999")+"/service/"+name+":default", &records)
	if len(records) != 1 || len(records[0].Providers) != providers || records[0].IPv6Address == "" {
		c.t.Fatalf("service %s: %+v", name, records)
	}
	return service{records[0].IPAddress, records[0].IPv6Address}
}

// addresses are those of a protocol's port, by IPv4 and IPv6.
func (s service) addresses(network string) []string {
	port := map[string]string{"tcp": "80", "udp": "53"}[network]
	return []string{net.JoinHostPort(s.v4, port), net.JoinHostPort(s.v6, port)}
}

// each runs f for both protocols and families.
func (s service) each(f func(network, address string)) {
	for _, network := range []string{"tcp", "udp"} {
		for _, address := range s.addresses(network) {
			f(network, address)
		}
	}
}

// TestServices: containers reach a service by TCP and UDP in both families, on the same
// host, across hosts and in another network; connections do not notice what becomes of
// other providers, or of the agent.
func TestServices(t *testing.T) {
	for _, mode := range []struct{ encap, forward string }{{"vxlan", "routing"}, {"vlan", "routing"}, {"vlan", "bridge"}} {
		t.Run(mode.encap+" "+mode.forward, func(t *testing.T) { services(t, mode.encap, mode.forward) })
	}
}

func services(t *testing.T, encap, forward string) {
	c := up(t, lab.Config{Hosts: 2, NetMode: encap, FwdMode: forward})
	c.netctl("net", "create", "front", "--encap", encap, "--pkt-tag=101", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("net", "create", "back", "--encap", encap, "--pkt-tag=102", "--subnet=30.1.1.0/24", "--gateway=30.1.1.254", "--subnetv6=2001:db8:2::/100", "--gatewayv6=2001:db8:2::fe")
	other := "back"
	if forward == "bridge" { // networks do not reach each other
		other = "front"
	}
	client := c.attach("host1", "client", "front")
	near := c.attach("host1", "near", "front")
	far := c.attach("host2", "far", other)
	third := c.attach("host2", "third", "front")
	app := map[string]string{"app": "web"}
	for _, p := range []lab.Container{near, far, third} {
		c.provide(p)
		c.event("start", p, app)
	}
	c.netctl("service", "create", "web", "--network", "front", "--selector", "app=web", "--port", "80:8080:TCP", "--port", "53:8080:UDP")
	svc := c.serviceWith("web", 3)

	t.Run("reached", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, from := range []lab.Container{client, third} {
			svc.each(func(network, address string) {
				var seen []string
				c.eventually(fmt.Sprintf("all providers answer %s at %s %s", from.Name, network, address), func() error {
					name, err := c.who(from, network, address)
					if err == nil && !slices.Contains(seen, name) {
						seen = append(seen, name)
					}
					if len(seen) < 3 {
						return fmt.Errorf("%v answered, at last %q: %w", seen, name, err)
					}
					return nil
				})
			})
		}
	})
	t.Run("by itself", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, from := range []lab.Container{near, far} {
			svc.each(func(network, address string) {
				c.eventually(fmt.Sprintf("%s answers itself at %s %s", from.Name, network, address), func() error {
					name, err := c.who(from, network, address)
					if err == nil && name != from.Name {
						err = fmt.Errorf("%s answers", name)
					}
					return err
				})
			})
		}
	})
	t.Run("restart and churn", func(t *testing.T) { serviceChurn(cluster{c.Lab, t}, svc, client, far, app) })
	t.Run("counted", func(t *testing.T) {
		c := cluster{c.Lab, t}
		h, err := c.Host("host1")
		if err != nil {
			t.Fatal(err)
		}
		c.eventually("counts of all providers", func() error { // the switch sums up now and then
			var stats map[string]struct {
				SvcStats map[string]struct {
					ProvStats map[string]struct{ PacketsIn, BytesIn, PacketsOut, BytesOut uint64 }
				}
			}
			c.get(h, "http://127.0.0.1:9090/svcstats", &stats)
			for _, p := range []lab.Container{near, far, third} {
				if s := stats[client.IPv4].SvcStats[svc.v4].ProvStats[p.IPv4]; s.PacketsIn == 0 || s.BytesIn == 0 || s.PacketsOut == 0 || s.BytesOut == 0 {
					return fmt.Errorf("from %s at %s: %+v", p.Name, svc.v4, s)
				}
			}
			return nil
		})
	})
	t.Run("nobody", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, p := range []lab.Container{near, far, third} {
			c.event("die", p, nil)
		}
		svc.each(func(network, address string) {
			c.eventually("refused at "+network+" "+address, func() error {
				if name, err := c.who(client, network, address); !errors.Is(err, syscall.ECONNREFUSED) {
					return fmt.Errorf("answered by %q: %w", name, err)
				}
				return nil
			})
		})
		c.netctl("service", "rm", "web")
	})
}

// serviceChurn holds connections while the agent restarts and a provider comes and
// goes. Only those to that provider may end, and they do.
func serviceChurn(c cluster, svc service, client, changing lab.Container, labels map[string]string) {
	type held struct {
		conn     net.Conn
		provider string
	}
	var all []held
	counts := map[string]int{}
	address := svc.addresses("tcp")
	c.eventually("connections to all providers", func() error {
		conn, err := c.dial(client, "tcp", address[len(all)%2])
		if err != nil {
			return err
		}
		c.t.Cleanup(func() { conn.Close() })
		name, err := ask(conn, patience)
		if err != nil {
			return err
		}
		all = append(all, held{conn, name})
		if counts[name]++; len(all) < 20 || len(counts) < 3 {
			return fmt.Errorf("%v", counts)
		}
		return nil
	})
	check := func(when string, except string) {
		c.t.Helper()
		for _, h := range all {
			if name, err := ask(h.conn, patience); h.provider != except && (err != nil || name != h.provider) {
				c.t.Errorf("%s: a connection to %s broke: answered by %q, %v", when, h.provider, name, err)
			}
		}
	}
	check("before", "")
	noneGone := c.watchFlows("host1")
	for range 2 {
		c.restart("host1", "netplugin", syscall.SIGKILL)
		check("after a restart of the agent", "")
	}
	noneGone()
	for range 3 {
		c.event("die", changing, nil)
		c.eventually("connections to "+changing.Name+" end", func() error {
			for _, h := range all {
				if h.provider != changing.Name {
					continue
				}
				if name, err := ask(h.conn, patience); err == nil {
					return fmt.Errorf("%s answers", name)
				}
			}
			return nil
		})
		check("without "+changing.Name, changing.Name)
		c.event("start", changing, labels)
		c.eventually(changing.Name+" is back", func() error {
			name, err := c.who(client, "tcp", address[0])
			if err == nil && !strings.Contains(name, changing.Name) {
				err = fmt.Errorf("%s answers", name)
			}
			return err
		})
		check("with "+changing.Name, changing.Name)
	}
}
