package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/test/lab"
)

// serve accepts TCP connections in a container, and closes them when the client does.
func serve(b *testing.B, l *lab.Lab, c lab.Container, port string) {
	b.Helper()
	var listener net.Listener
	within(b, l, c, func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(c.IPv4, port))
		return err
	})
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = conn.Read(make([]byte, 1)); conn.Close() }()
		}
	}()
}

// addService makes the containers providers of a service and returns its address.
func addService(b *testing.B, l *lab.Lab, providers ...lab.Container) netip.AddrPort {
	b.Helper()
	h := l.Masters()[0]
	base := "http://" + net.JoinHostPort(h.ControlIP(), "9999")
	for _, c := range providers {
		body, err := json.Marshal(masterapi.UpdateEndpointRequest{
			Tenant: "default", Network: c.Network, EndpointID: c.ContainerID, ContainerID: c.ContainerID, Event: "start", Labels: map[string]string{"app": "web"},
		})
		if err != nil {
			b.Fatal(err)
		}
		resp, err := h.HTTP().Post(base+"/plugin/updateEndpoint", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
	if out, err := l.NetctlOutput(b.Context(), "service", "create", "web", "--network", "bench", "--selector", "app=web", "--port", "80:8080:TCP"); err != nil {
		b.Fatal(err, out)
	}
	resp, err := h.HTTP().Get(base + "/service/web:default")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var records []state.ServiceLB
	if err := json.NewDecoder(resp.Body).Decode(&records); err != nil || len(records) != 1 || len(records[0].Providers) != len(providers) {
		b.Fatalf("service %+v: %v", records, err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(records[0].IPAddress), 80)
}

// BenchmarkServiceConnect: opening a TCP connection to a service, against opening one to
// the container that provides it, in turns.
func BenchmarkServiceConnect(b *testing.B) {
	for _, bench := range []struct {
		name  string
		hosts int
	}{{"same host", 1}, {"across hosts", 2}} {
		b.Run(bench.name, func(b *testing.B) {
			l := upWithNetwork(b, bench.hosts)
			var all []lab.Container
			for n := range 2 {
				c, err := l.Attach(b.Context(), lab.Attachment{Host: l.Hosts()[n%bench.hosts].Name, Name: fmt.Sprintf("c%d", n), Network: "bench"})
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, c)
			}
			serve(b, l, all[1], "8080")
			serve(b, l, all[1], "8081") // where no service leads
			vip := addService(b, l, all[1])
			direct := netip.AddrPortFrom(netip.MustParseAddr(all[1].IPv4), 8081)
			var toService, toContainer []time.Duration
			within(b, l, all[0], func() error {
				connect := func(to netip.AddrPort) (time.Duration, error) {
					begin := time.Now()
					conn, err := net.DialTimeout("tcp", to.String(), 30*time.Second)
					if err != nil {
						return 0, err
					}
					took := time.Since(begin)
					return took, conn.Close()
				}
				for deadline := time.Now().Add(30 * time.Second); ; { // until the service is known
					if _, err := connect(vip); err == nil {
						break
					} else if time.Now().After(deadline) {
						return err
					}
				}
				for range 100 { // finds the way
					_, _ = connect(vip)
					_, _ = connect(direct)
				}
				for b.Loop() {
					for range 1000 {
						for _, m := range []struct {
							to  netip.AddrPort
							all *[]time.Duration
						}{{vip, &toService}, {direct, &toContainer}} {
							took, err := connect(m.to)
							if err != nil {
								return err
							}
							*m.all = append(*m.all, took)
						}
					}
				}
				return nil
			})
			slices.Sort(toService)
			slices.Sort(toContainer)
			p50 := func(d []time.Duration) float64 { return float64(d[len(d)/2].Microseconds()) }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(p50(toService), "service-µs")
			b.ReportMetric(p50(toContainer), "direct-µs")
			b.ReportMetric(p50(toService)/p50(toContainer), "ratio")
		})
	}
}
