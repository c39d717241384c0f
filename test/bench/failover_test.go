package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// BenchmarkFailover: how long after its end a leader's successor serves, for each way to
// end and each store. A change is asked of one of the two netmasters that are left,
// again and again until it is made. With the embedded store the leader takes a member
// of the store along, most often the one that leads there.
func BenchmarkFailover(b *testing.B) {
	for _, store := range []string{lab.StoreEmbedded, lab.StoreEtcd, lab.StoreConsul} {
		b.Run(store, func(b *testing.B) {
			l := labtest.Up(b, lab.Config{Hosts: 3, Masters: 3, Store: store})
			for _, how := range []struct {
				name   string
				signal syscall.Signal
			}{{"killed", syscall.SIGKILL}, {"stopped", syscall.SIGTERM}} {
				b.Run(how.name, func(b *testing.B) {
					var all []time.Duration
					for b.Loop() {
						took, err := failover(b.Context(), l, how.signal)
						if err != nil {
							b.Fatal(err)
						}
						all = append(all, took)
					}
					b.ReportMetric(quantile(all, 0.5).Seconds(), "s-to-serving-p50")
					b.ReportMetric(slices.Max(all).Seconds(), "s-to-serving-max")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// failover ends the leader by a signal and returns how long it took until a change could
// be made. The leader is started again.
func failover(ctx context.Context, l *lab.Lab, signal syscall.Signal) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	leader, err := leaderOf(ctx, l)
	if err != nil {
		return 0, err
	}
	hosts := l.Hosts()
	other := hosts[(slices.Index(hosts, leader)+1)%len(hosts)]
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- leader.StopDaemon(ctx, "netmaster", signal) }()
	for {
		name := fmt.Sprintf("t%d", time.Now().UnixNano())
		err := apiOf(other).post(ctx, "/api/v1/tenants/"+name+"/", &contivmodel.Tenant{TenantName: name})
		took := time.Since(began)
		now, lerr := leaderOf(ctx, l, other)
		if err == nil && lerr == nil && now != leader {
			if err := <-ended; err != nil {
				return 0, err
			}
			if err := leader.StartDaemon(ctx, "netmaster"); err != nil {
				return 0, err
			}
			if err := leader.AwaitReady(ctx, "netmaster"); err != nil {
				return 0, err
			}
			time.Sleep(time.Second) // a member that comes back catches up
			return took, nil
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("no other leader: %w (%w)", ctx.Err(), err)
		}
	}
}

// leaderOf asks netmasters, all or those given, until one names a leader.
func leaderOf(ctx context.Context, l *lab.Lab, asked ...*lab.Host) (*lab.Host, error) {
	if len(asked) == 0 {
		asked = l.Hosts()
	}
	for {
		for _, h := range asked {
			var info struct {
				Leader string `json:"leader-ip"`
			}
			if err := getJSON(ctx, h, "/info", &info); err != nil {
				continue
			}
			for _, candidate := range l.Hosts() {
				if info.Leader == candidate.ControlIP()+":9999" {
					return candidate, nil
				}
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("nobody leads: %w", ctx.Err())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func getJSON(ctx context.Context, h *lab.Host, path string, into any) error {
	body, err := get(ctx, h, path)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(into)
}

// get asks the host's netmaster. The caller closes the answer.
func get(ctx context.Context, h *lab.Host, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:9999"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := h.HTTP().Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	return resp.Body, nil
}
