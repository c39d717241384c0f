package api_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

// TestSameKey checks that of several requests to create the same object at the same
// time, and to delete it, one does it.
func TestSameKey(t *testing.T) {
	c, err := client.New(client.Config{URLs: []string{apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := contivmodel.Network{TenantName: "default", NetworkName: "n", Encap: "vxlan", Subnet: "10.1.1.0/24"}
	key := "default:n"
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"create", func(ctx context.Context) error {
			same := n
			_, err := client.Put(ctx, c, contivmodel.NetworkKind(), &same)
			return err
		}},
		{"delete", func(ctx context.Context) error { return client.Delete(ctx, c, contivmodel.NetworkKind(), key) }},
	} {
		var done atomic.Int32
		var g errgroup.Group
		for range 16 {
			g.Go(func() error {
				if step.do(t.Context()) == nil {
					done.Add(1)
				}
				return nil
			})
		}
		_ = g.Wait()
		if done.Load() != 1 {
			t.Errorf("%s: %d of the requests have done it", step.name, done.Load())
		}
	}
}

// TestGroupNumbers checks that a group's number is the lowest that no group has, also
// after a change of leader.
func TestGroupNumbers(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	number := func(name, want string) exchange {
		return exchange{
			"POST", "/plugin/createEndpoint", `{"TenantName":"default","NetworkName":"n1","ConfigEP":{"Container":"in-` + name + `","ServiceName":"` + name + `"}}`,
			200, `~"endpointGroupId":` + want + `,`,
		}
	}
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"), group("a", ""), group("b", ""), group("c", ""),
		number("a", "1"), number("c", "3"), remove(groupPath, "default:b"),
	})
	play(t, apitest.Start(t, store, apitest.Config(apitest.Log(t))), []exchange{
		group("d", ""), group("e", ""), number("d", "2"), number("e", "4"), number("c", "3"),
	})
}

// TestGroupGone checks that an endpoint whose group is gone can be deleted.
func TestGroupGone(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"), group("a", ""),
		{"POST", "/plugin/createEndpoint", `{"TenantName":"default","NetworkName":"n1","ConfigEP":{"Container":"c","ServiceName":"a"}}`, 200, `~10.1.1.1`},
	})
	txn := objdb.Txn{Then: []objdb.Op{objdb.Delete(state.GroupRoot + "a:default"), objdb.Delete(state.ModelRoot + "endpointGroup/default:a")}}
	if _, err := store.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	play(t, apitest.Start(t, store, apitest.Config(apitest.Log(t))), []exchange{
		{"POST", "/plugin/deleteEndpoint", `{"TenantName":"default","NetworkName":"n1","EndpointID":"c"}`, 200, `~10.1.1.1`},
		{"GET", inspect + "networks/default:n1/", "", 200, `~"availableIPAddresses":"10.1.1.1-10.1.1.254"`},
	})
}

// TestOpflex checks that the fabric mode aci-opflex is taken, and works like default.
func TestOpflex(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	play(t, base, []exchange{
		{
			"POST", globalPath + "global/", `{"name":"global","networkInfraType":"aci-opflex","pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`, 200,
			`~"networkInfraType":"aci-opflex"`,
		},
		network("n1", "10.1.1.0/24"), group("a", ""),
		{"GET", inspect + "endpointGroups/default:a/", "", 200, `~"Oper":{"externalPktTag":1,"groupTag":"a.default","pktTag":1}`},
	})
}

// TestMuteAgent checks that an agent which does not answer fails the request that asks
// it, and holds up no other.
func TestMuteAgent(t *testing.T) {
	store := memory.New()
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	cfg := apitest.Config(apitest.Log(t))
	cfg.RequestTimeout = 3 * time.Second
	cfg.AgentPort = agent(t, func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(asked) })
		<-release
	})
	defer close(release)
	base := apitest.Start(t, store, cfg)
	register(t, store, "netplugin", "127.0.0.1", "h1")
	play(t, base, []exchange{{"POST", bgpPath + "h1/", `{"hostname":"h1","routerip":"10.1.1.1/24"}`, 200, `~h1`}})
	var g errgroup.Group
	g.Go(func() error {
		play(t, base, []exchange{{"GET", inspect + "Bgps/h1/", "", 500, `~the agent does not answer`}})
		return nil
	})
	<-asked
	play(t, base, []exchange{{"POST", bgpPath + "h2/", `{"hostname":"h2","routerip":"10.1.1.1/24"}`, 200, `~h2`}, remove(bgpPath, "h1")})
	_ = g.Wait()
}
