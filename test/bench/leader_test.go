package bench

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// BenchmarkLeaderStart: how long a netmaster that starts in a large cluster takes until
// it serves, and what it weighs then, its store being another process: 5,000 networks,
// 5,000 groups, 20,000 rules, 100,000 endpoints. The floor is what reading the store
// takes.
func BenchmarkLeaderStart(b *testing.B) {
	const networks, policies, rules, endpoints, clients = 5_000, 200, 20_000, 100_000, 16
	l := labtest.Up(b, lab.Config{Hosts: 1, Store: lab.StoreEtcd})
	h := l.Hosts()[0]
	if err := h.StopDaemon(b.Context(), "netplugin", syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	a := apiOf(h)
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	fill := func(n int, do func(ctx context.Context, i int) error) {
		if _, err := each(ctx, n, clients, do); err != nil {
			b.Fatal(err)
		}
	}
	object := func(ctx context.Context, collection, key string, obj any) error {
		return a.post(ctx, "/api/v1/"+collection+"/default:"+key+"/", obj)
	}
	fill(policies, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("p%d", i)
		return object(ctx, contivmodel.PolicyKind().Collection, name, &contivmodel.Policy{TenantName: "default", PolicyName: name})
	})
	fill(networks, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("n%d", i)
		return object(ctx, contivmodel.NetworkKind().Collection, name, &contivmodel.Network{
			TenantName: "default", NetworkName: name, Encap: "vxlan", Subnet: fmt.Sprintf("20.%d.%d.0/24", i>>8, i&255),
		})
	})
	fill(networks, func(ctx context.Context, i int) error {
		g := &contivmodel.EndpointGroup{TenantName: "default", GroupName: fmt.Sprintf("g%d", i), NetworkName: fmt.Sprintf("n%d", i)}
		if i < policies {
			g.Policies = []string{fmt.Sprintf("p%d", i)}
		}
		return object(ctx, contivmodel.EndpointGroupKind().Collection, g.GroupName, g)
	})
	fill(rules, func(ctx context.Context, i int) error {
		r := &contivmodel.Rule{
			TenantName: "default", PolicyName: fmt.Sprintf("p%d", i%policies), RuleID: fmt.Sprint(i), Priority: 1,
			Direction: "in", Action: "allow", Protocol: "tcp", Port: 1 + i,
		}
		return object(ctx, contivmodel.RuleKind().Collection, r.PolicyName+":"+r.RuleID, r)
	})
	fill(endpoints, func(ctx context.Context, i int) error {
		return a.createEndpoint(ctx, fmt.Sprintf("n%d", i%networks), "elsewhere", fmt.Sprintf("c%d", i))
	})
	for b.Loop() {
		if err := h.StopDaemon(ctx, "netmaster", syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := h.StartDaemon(ctx, "netmaster"); err != nil {
			b.Fatal(err)
		}
		for !a.serves(ctx) {
			if ctx.Err() != nil {
				b.Fatal(ctx.Err())
			}
			time.Sleep(5 * time.Millisecond)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-serving")
		rss, err := a.metric(ctx, 9999, "process_resident_memory_bytes")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(rss/megabyte, "MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// serves reports whether netmaster answers a request for an object.
func (a api) serves(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:9999/api/v1/tenants/default/", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
