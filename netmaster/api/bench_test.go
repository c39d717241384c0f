package api_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// openEmbedded starts an etcd in this process, with its data on disk, synced.
func openEmbedded(t testing.TB) objdb.Store {
	t.Helper()
	store, err := embedded.Open(context.Background(), embedded.Config{Dir: t.TempDir(), ListenClient: netxtest.FreeAddress(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// BenchmarkCreateEndpoint measures createEndpoint over HTTP with its data on disk. An
// op is one endpoint; what it costs must not depend on the size of the subnet.
func BenchmarkCreateEndpoint(b *testing.B) {
	for _, subnet := range []string{"10.1.1.0/24", "10.16.0.0/12"} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("subnet=%s/clients=%d", subnet[len(subnet)-3:], clients), func(b *testing.B) {
				benchmarkCreate(b, subnet, clients)
			})
		}
	}
}

func benchmarkCreate(b *testing.B, subnet string, clients int) {
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	url := apitest.Start(b, openEmbedded(b), apitest.Config(log))
	c, err := client.New(client.Config{URLs: []string{url}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := b.Context()
	n := &contivmodel.Network{TenantName: "default", NetworkName: "n", Encap: "vxlan", Subnet: subnet}
	if _, err := client.Put(ctx, c, contivmodel.NetworkKind(), n); err != nil {
		b.Fatal(err)
	}
	// In rounds, so that a /24 has room: what a round creates is removed off the clock.
	const round = 200
	for done := 0; done < b.N; done += round {
		size := min(round, b.N-done)
		each(b, clients, size, func(ctx context.Context, i int) error {
			_, _, err := c.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
				TenantName: "default", NetworkName: "n", ConfigEP: masterapi.ConfigEP{Container: fmt.Sprint("c", i), Host: "host1"},
			})
			return err
		})
		b.StopTimer()
		each(b, 8, size, func(ctx context.Context, i int) error {
			_, _, err := c.DeleteEndpoint(ctx, masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: fmt.Sprint("c", i)})
			return err
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "endpoints/s")
}

// each runs do for 0 … n−1, shared among clients.
func each(b *testing.B, clients, n int, do func(context.Context, int) error) {
	b.Helper()
	g, ctx := errgroup.WithContext(b.Context())
	for k := range clients {
		g.Go(func() error {
			for i := k; i < n; i += clients {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPutObjects measures the creation of objects over HTTP by 8 clients, with
// their data on disk. The rules belong to a policy that one group is under.
func BenchmarkPutObjects(b *testing.B) {
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	const clients = 8
	put := func(b *testing.B, one func(c *client.Client, i int) error) {
		url := apitest.Start(b, openEmbedded(b), apitest.Config(log))
		c, err := client.New(client.Config{URLs: []string{url}})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		ctx := b.Context()
		_, err = client.Put(ctx, c, contivmodel.NetworkKind(), &contivmodel.Network{TenantName: "default", NetworkName: "n", Encap: "vxlan", Subnet: "10.1.1.0/24"})
		if err == nil {
			_, err = client.Put(ctx, c, contivmodel.PolicyKind(), &contivmodel.Policy{TenantName: "default", PolicyName: "p"})
		}
		if err == nil {
			_, err = client.Put(ctx, c, contivmodel.EndpointGroupKind(), &contivmodel.EndpointGroup{
				TenantName: "default", NetworkName: "n", GroupName: "g", Policies: []string{"p"},
			})
		}
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		each(b, clients, b.N, func(_ context.Context, i int) error { return one(c, i) })
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	}
	b.Run("networks", func(b *testing.B) {
		put(b, func(c *client.Client, i int) error {
			n := &contivmodel.Network{
				TenantName: "default", NetworkName: fmt.Sprint("n", i), Encap: "vxlan", Subnet: fmt.Sprintf("11.%d.%d.0/29", i>>8&255, i&255),
			}
			_, err := client.Put(b.Context(), c, contivmodel.NetworkKind(), n)
			return err
		})
	})
	b.Run("groups", func(b *testing.B) {
		put(b, func(c *client.Client, i int) error {
			g := &contivmodel.EndpointGroup{TenantName: "default", NetworkName: "n", GroupName: fmt.Sprint("g", i)}
			_, err := client.Put(b.Context(), c, contivmodel.EndpointGroupKind(), g)
			return err
		})
	})
	b.Run("rules", func(b *testing.B) {
		put(b, func(c *client.Client, i int) error {
			r := &contivmodel.Rule{
				TenantName: "default", PolicyName: "p", RuleID: fmt.Sprint(i), Direction: "in", Action: "allow", Protocol: "tcp", Port: 1 + i%65535,
			}
			_, err := client.Put(b.Context(), c, contivmodel.RuleKind(), r)
			return err
		})
	})
}
