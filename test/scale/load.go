package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
)

// clients is how many requests are made at a time.
const clients = 16

// shared is the tenant that has an endpoint on every host, and its network and policy;
// everybody is its group.
const (
	shared    = "shared"
	everybody = "everybody"
)

// spread is how many hosts have endpoints of one of the other tenants.
const spread = 10

// size is what a cluster has.
type size struct {
	Hosts, Agents, Full                                   int
	Endpoints, Tenants, Networks, Groups, Rules, Services int
}

// each does n things, several at a time, and says how long that took.
func each(ctx context.Context, what string, n int, do func(ctx context.Context, i int) error) error {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for k := range clients {
		g.Go(func() error {
			for i := k; i < n; i += clients {
				if err := do(ctx, i); err != nil {
					return fmt.Errorf("%s %d: %w", what, i, err)
				}
			}
			return nil
		})
	}
	err := g.Wait()
	say("%d %s in %s", n, what, time.Since(began).Round(time.Millisecond))
	return err
}

func put[T, O any](ctx context.Context, c *client.Client, kind contivmodel.Kind[T, O], obj T) error {
	_, err := client.Put(ctx, c, kind, &obj)
	return err
}

func tenantName(i int) string         { return fmt.Sprintf("t%04d", i) }
func numbered(s string, i int) string { return fmt.Sprintf("%s%d", s, i) }

// load makes the objects of a size through netmaster's API.
func (c *testbed) load(ctx context.Context, s size) error {
	networks, groups, rules := s.Networks/s.Tenants, s.Groups/s.Tenants, s.Rules/s.Groups
	steps := []struct {
		what string
		n    int
		do   func(ctx context.Context, i int) error
	}{
		{"hosts", s.Hosts, c.putHost},
		{"tenants", s.Tenants, func(ctx context.Context, i int) error {
			return put(ctx, c.client, contivmodel.TenantKind(), contivmodel.Tenant{TenantName: tenantName(i)})
		}},
		{"networks", networks * s.Tenants, func(ctx context.Context, i int) error {
			return put(ctx, c.client, contivmodel.NetworkKind(), contivmodel.Network{
				TenantName: tenantName(i / networks), NetworkName: numbered("net", i%networks), Encap: "vxlan",
				Subnet: fmt.Sprintf("10.%d.0.0/16", i%networks), Gateway: fmt.Sprintf("10.%d.255.254", i%networks),
			})
		}},
		{"policies", groups * s.Tenants, func(ctx context.Context, i int) error {
			return put(ctx, c.client, contivmodel.PolicyKind(), contivmodel.Policy{TenantName: tenantName(i / groups), PolicyName: numbered("policy", i%groups)})
		}},
		{"groups", groups * s.Tenants, func(ctx context.Context, i int) error {
			return put(ctx, c.client, contivmodel.EndpointGroupKind(), contivmodel.EndpointGroup{
				TenantName: tenantName(i / groups), GroupName: numbered("group", i%groups), NetworkName: numbered("net", i%groups%networks), Policies: []string{numbered("policy", i%groups)},
			})
		}},
		{"rules", rules * groups * s.Tenants, func(ctx context.Context, i int) error {
			group := i / rules
			return put(ctx, c.client, contivmodel.RuleKind(), contivmodel.Rule{
				TenantName: tenantName(group / groups), PolicyName: numbered("policy", group%groups), RuleID: fmt.Sprint(i % rules),
				Direction: contivmodel.DirectionIn, Action: contivmodel.ActionAllow, Protocol: "tcp", Port: 1000 + i%rules, Priority: 10,
				FromEndpointGroup: numbered("group", (group+1)%groups),
			})
		}},
		{"services", s.Services, func(ctx context.Context, i int) error {
			return put(ctx, c.client, contivmodel.ServiceLBKind(), contivmodel.ServiceLB{
				TenantName: tenantName(i % s.Tenants), ServiceName: numbered("service", i/s.Tenants), NetworkName: "net0",
				Ports: []string{"80:8080:TCP"}, Selectors: []string{"app=" + numbered("web", i/s.Tenants)},
			})
		}},
		{"endpoints", s.Endpoints, func(ctx context.Context, i int) error {
			_, err := c.createEndpoint(ctx, s, i)
			return err
		}},
	}
	for _, step := range steps {
		if err := each(ctx, step.what, step.n, step.do); err != nil {
			return err
		}
	}
	return c.loadShared(ctx, s)
}

// loadShared makes the tenant that has an endpoint on every host.
func (c *testbed) loadShared(ctx context.Context, s size) error {
	if err := put(ctx, c.client, contivmodel.TenantKind(), contivmodel.Tenant{TenantName: shared}); err != nil {
		return err
	}
	if err := put(ctx, c.client, contivmodel.NetworkKind(), contivmodel.Network{TenantName: shared, NetworkName: shared, Encap: "vxlan", Subnet: "10.0.0.0/8", Gateway: "10.255.255.254"}); err != nil {
		return err
	}
	if err := put(ctx, c.client, contivmodel.PolicyKind(), contivmodel.Policy{TenantName: shared, PolicyName: shared}); err != nil {
		return err
	}
	if err := put(ctx, c.client, contivmodel.EndpointGroupKind(), contivmodel.EndpointGroup{TenantName: shared, GroupName: everybody, NetworkName: shared, Policies: []string{shared}}); err != nil {
		return err
	}
	return each(ctx, "shared endpoints", s.Hosts, func(ctx context.Context, i int) error {
		_, _, err := c.client.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
			TenantName: shared, NetworkName: shared, ServiceName: everybody, EndpointID: numbered("s", i),
			ConfigEP: masterapi.ConfigEP{Container: numbered("s", i), Host: hostName(i + 1), ServiceName: everybody},
		})
		return err
	})
}

// putHost writes what the agent of a host says of it.
func (c *testbed) putHost(ctx context.Context, i int) error {
	a := hostAddress(i + 1).String()
	resp, err := c.client.Do(ctx, "PUT", masterapi.HostPath(hostName(i+1), masterapi.HostRecord), masterapi.HostRecords{Host: &state.Host{ID: hostName(i + 1), VtepIP: a, CtrlIP: a}})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// endpoint is the request for endpoint i: those of a tenant are on spread hosts. The first
// ones of a tenant provide its services.
func (s size) endpoint(i int) masterapi.CreateEndpointRequest {
	tenant, nth := i%s.Tenants, i/s.Tenants
	group := nth % (s.Groups / s.Tenants)
	return masterapi.CreateEndpointRequest{
		TenantName: tenantName(tenant), NetworkName: numbered("net", group%(s.Networks/s.Tenants)), ServiceName: numbered("group", group), EndpointID: numbered("c", i),
		ConfigEP: masterapi.ConfigEP{Container: numbered("c", i), Host: hostName(1 + (tenant*spread+nth%spread)%s.Hosts), ServiceName: numbered("group", group)},
	}
}

// createEndpoint creates endpoint i, and returns the revision of that.
func (c *testbed) createEndpoint(ctx context.Context, s size, i int) (int64, error) {
	req := s.endpoint(i)
	ep, revision, err := c.client.CreateEndpoint(ctx, req)
	if err != nil || i >= s.Services {
		return revision, err
	}
	return revision, c.client.UpdateEndpoint(ctx, masterapi.UpdateEndpointRequest{
		IPAddress: ep.EndpointConfig.IPAddress, ContainerID: req.EndpointID, Labels: map[string]string{"app": numbered("web", i/s.Tenants)},
		Tenant: req.TenantName, Network: req.NetworkName, Event: "start", EndpointID: req.EndpointID,
	})
}

// deleteEndpoint deletes endpoint i again.
func (c *testbed) deleteEndpoint(ctx context.Context, s size, i int) (int64, error) {
	req := s.endpoint(i)
	_, revision, err := c.client.DeleteEndpoint(ctx, masterapi.DeleteEndpointRequest{TenantName: req.TenantName, NetworkName: req.NetworkName, ServiceName: req.ServiceName, EndpointID: req.EndpointID})
	return revision, err
}
