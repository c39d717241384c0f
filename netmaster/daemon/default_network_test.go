package daemon_test

import (
	"testing"

	"github.com/contiv/netplugin/contivmodel"
	rest "github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/utils/netspec"
)

// A new cluster has its default network at once; one that has other networks is left
// alone, whatever became of the default one.
func TestDefaultNetwork(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string
		want   int
	}{
		{"a new cluster", nil, 1},
		{"another network is there", []string{"data"}, 1},
		{"networks of hosts do not count", []string{"infra"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memory.New()
			cfg := apitest.Config(apitest.Log(t))
			t.Run("before", func(t *testing.T) {
				first := connect(t, store, cfg)
				for _, kind := range c.before {
					n := &contivmodel.Network{TenantName: "default", NetworkName: "n-" + kind, Settings: netspec.Settings{NwType: kind}, Encap: "vxlan", Subnet: "20.9.0.0/24", Gateway: "20.9.0.1"}
					if _, err := rest.Put(t.Context(), first, contivmodel.NetworkKind(), n); err != nil {
						t.Fatal(err)
					}
				}
			})
			cfg.DefaultNetwork = &contivmodel.Network{
				TenantName: "default", NetworkName: daemon.DefaultNetwork, Encap: "vxlan", Subnet: "20.1.0.0/16", Gateway: "20.1.0.1",
				IPv6Subnet: "fd00:20::/64", IPv6Gateway: "fd00:20::1",
			}
			later := connect(t, store, cfg)
			all, err := rest.List(t.Context(), later, contivmodel.NetworkKind())
			if err != nil || len(all) != c.want {
				t.Fatalf("%d networks, %v; expected %d", len(all), err, c.want)
			}
			if c.before == nil && (all[0].NetworkName != daemon.DefaultNetwork || all[0].Subnet != "20.1.0.0/16" || all[0].IPv6Gateway != "fd00:20::1") {
				t.Errorf("%+v", all[0])
			}
		})
	}
}

func connect(t *testing.T, store objdb.Store, cfg daemon.LeaderConfig) *rest.Client {
	t.Helper()
	c, err := rest.New(rest.Config{URLs: []string{apitest.Start(t, store, cfg)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
