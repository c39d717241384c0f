package bench

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/vishvananda/netns"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// within runs f in the network of a container.
func within(b *testing.B, l *lab.Lab, c lab.Container, f func() error) {
	b.Helper()
	h, err := l.Host(c.Host)
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ns, err := netns.GetFromPath(fmt.Sprintf("/proc/%d/root%s", h.PID(), c.Netns))
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDNS: how long a name query takes that the agent answers, against a datagram
// that another container of the host sends back.
func BenchmarkDNS(b *testing.B) {
	l := labtest.Up(b, lab.Config{Hosts: 1, DNS: "on"})
	if out, err := l.NetctlOutput(b.Context(), "net", "create", "bench", "--subnet=10.1.0.0/16", "--gateway=10.1.255.254"); err != nil {
		b.Fatal(err, out)
	}
	var containers []lab.Container
	for _, name := range []string{"client", "server"} {
		c, err := l.Attach(b.Context(), lab.Attachment{Host: "host1", Name: name, Network: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		containers = append(containers, c)
	}
	client, server := containers[0], containers[1]
	var echo net.PacketConn
	within(b, l, server, func() (err error) {
		echo, err = net.ListenPacket("udp4", server.IPv4+":7")
		return err
	})
	defer echo.Close()
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := echo.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = echo.WriteTo(buf[:n], from)
		}
	}()
	question := &dns.Msg{}
	question.SetQuestion("server.", dns.TypeA)
	wire, err := question.Pack()
	if err != nil {
		b.Fatal(err)
	}
	var ask, plain net.Conn
	within(b, l, client, func() (err error) {
		if ask, err = net.Dial("udp4", "10.1.255.254:53"); err != nil {
			return err
		}
		plain, err = net.Dial("udp4", server.IPv4+":7")
		return err
	})
	defer ask.Close()
	defer plain.Close()
	const batch = 300 // fewer than the queries that a container may ask at once
	var queries, floor []float64
	for b.Loop() {
		queries = append(queries, trips(b, ask, wire, batch)...)
		floor = append(floor, trips(b, plain, wire, batch)...)
		time.Sleep(batch * time.Millisecond) // a container may ask a thousand times a second
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(queries)*1e6, "µs/query")
	b.ReportMetric(median(floor)*1e6, "floor-µs")
	b.ReportMetric(1/median(queries), "queries/s")
	b.ReportMetric(median(queries)/median(floor), "ratio")
}

// trips measures n exchanges, one after the other, in seconds. What is lost is sent
// again and not counted.
func trips(b *testing.B, c net.Conn, message []byte, n int) []float64 {
	b.Helper()
	var took []float64
	buf := make([]byte, 1500)
	for until := time.Now().Add(time.Minute); len(took) < n; {
		if time.Now().After(until) {
			b.Fatalf("%d of %d answers from %s in a minute", len(took), n, c.RemoteAddr())
		}
		began := time.Now()
		if _, err := c.Write(message); err != nil {
			b.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(buf); err == nil {
			took = append(took, time.Since(began).Seconds())
		}
	}
	return slices.Clip(took)
}
