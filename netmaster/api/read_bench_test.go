package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
)

// BenchmarkRead measures, over HTTP, the list of 10,000 networks and the inspection of
// a network with 10,000 endpoints: at most 150 ms each.
func BenchmarkRead(b *testing.B) {
	const many, tenants = 10_000, 50
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	url := apitest.Start(b, memory.New(), apitest.Config(log))
	c, err := client.New(client.Config{URLs: []string{url}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	tenant := func(i int) string { return fmt.Sprint("t", i%tenants) }
	each(b, 8, tenants, func(ctx context.Context, i int) error {
		_, err := client.Put(ctx, c, contivmodel.TenantKind(), &contivmodel.Tenant{TenantName: tenant(i)})
		return err
	})
	each(b, 8, many, func(ctx context.Context, i int) error {
		n := &contivmodel.Network{TenantName: tenant(i), NetworkName: fmt.Sprint("n", i), Encap: "vxlan", Subnet: fmt.Sprintf("11.%d.%d.0/24", i>>8, i&255)}
		if i == 0 {
			n.Subnet = "10.0.0.0/8"
		}
		_, err := client.Put(ctx, c, contivmodel.NetworkKind(), n)
		return err
	})
	each(b, 8, many, func(ctx context.Context, i int) error {
		_, _, err := c.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
			TenantName: tenant(0), NetworkName: "n0", EPCommonName: fmt.Sprint("web-", i),
			ConfigEP: masterapi.ConfigEP{Container: fmt.Sprint("c", i), Host: fmt.Sprint("host", i%100)},
		})
		return err
	})
	for name, path := range map[string]string{
		"list-10000-networks": networkPath, "inspect-10000-endpoints": inspect + "networks/t0:n0/",
	} {
		b.Run(name, func(b *testing.B) {
			bytes := int64(0)
			for b.Loop() {
				resp, err := http.Get(url + path)
				if err != nil {
					b.Fatal(err)
				}
				if bytes, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status, err)
				}
				_ = resp.Body.Close()
			}
			b.ReportMetric(float64(bytes)/(1<<20), "MiB/answer")
		})
	}
}
