package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/lab"
)

// arrivals notes when the first record of a sender's port comes from netmaster.
type arrivals struct {
	mu   sync.Mutex
	at   map[uint16]time.Time
	came chan struct{} // has room for one
}

// follow reads the stream of flows until ctx ends.
func (a *arrivals) follow(ctx context.Context, h *lab.Host) error {
	stream, err := get(ctx, h, flowapi.PathMaster+"?follow=true")
	if err != nil {
		return err
	}
	defer stream.Close()
	for events := json.NewDecoder(stream); ; {
		var e flowapi.Event
		if err := events.Decode(&e); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("read the flow log: %w", err)
		}
		if e.Record != nil {
			a.note(e.Record.Src.Port)
		}
	}
}

func (a *arrivals) note(port uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.at[port]; !known {
		a.at[port] = time.Now()
	}
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// after returns how long after a moment the record of a port came.
func (a *arrivals) after(port uint16, began time.Time) (took time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.at[port]
	return at.Sub(began), ok
}

// BenchmarkFlowVisible: how long after its first packet a connection is in the stream of
// netmaster, allowed and denied, as a part of the two seconds that are promised.
func BenchmarkFlowVisible(b *testing.B) {
	const promised = 2 * time.Second
	g := withLog(b, "policed")
	addRules(b, g.l, 0, 1)
	if _, err := g.l.NetctlOutput(b.Context(), "policy", "rule-add", "guard", "udp", "--direction=in", "--protocol=udp", "--action=deny", "--wait"); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, network string
		connections   int
		pause         time.Duration // no multiple of what anything waits for
	}{
		{"allowed", "tcp", 60, 73 * time.Millisecond},
		{"denied", "udp", 20, 1111 * time.Millisecond}, // those of a second are one record
	} {
		b.Run(c.name, func(b *testing.B) {
			seen := &arrivals{at: map[uint16]time.Time{}, came: make(chan struct{}, 1)}
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- seen.follow(ctx, g.l.Hosts()[0]) }()
			began := map[uint16]time.Time{}
			for b.Loop() {
				within(b, g.l, g.client, func() error {
					for range c.connections {
						start := time.Now()
						conn, err := net.DialTimeout(c.network, g.target, 10*time.Second)
						if err != nil {
							return err
						}
						if _, err := conn.Write([]byte("x")); err != nil {
							return err
						}
						own, err := netip.ParseAddrPort(conn.LocalAddr().String())
						if err != nil {
							return err
						}
						began[own.Port()] = start
						conn.Close()
						time.Sleep(c.pause)
					}
					return nil
				})
			}
			var took []time.Duration
			for port, start := range began {
				for {
					d, ok := seen.after(port, start)
					if ok {
						took = append(took, d)
						break
					}
					select {
					case <-seen.came:
					case err := <-ended:
						b.Fatal(err)
					case <-time.After(time.Minute):
						b.Fatalf("the connection from port %d is not recorded", port)
					}
				}
			}
			stop()
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op")
			for metric, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
				at := quantile(took, q)
				b.ReportMetric(milliseconds(at), metric+"-ms")
				b.ReportMetric(float64(at)/float64(promised), metric+"-ratio")
			}
		})
	}
}
