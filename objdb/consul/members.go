package consul

import (
	"context"
	"fmt"
	"net"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
)

// serf is what the agents of Consul say of a member that is not well, by its status
// (github.com/hashicorp/serf, serf.MemberStatus); 1 is alive.
var serf = map[int]string{0: "its state is unknown", 2: "it is leaving", 3: "it has left", 4: "the others do not reach it"}

// Members implements objdb.Membership: the servers, as an agent sees them.
func (s *Store) Members(ctx context.Context) ([]objdb.Member, error) {
	ctx, over := s.life.Bound(ctx)
	defer over()
	var (
		agents []api.AgentMember
		leader string
	)
	if err := s.repeat(ctx, func(ctx context.Context, c *api.Client) error {
		agents = nil
		_, err := c.Raw().Query("/v1/agent/members", &agents, (&api.QueryOptions{}).WithContext(ctx))
		return err
	}); err != nil {
		return nil, s.wrap(err, "list the members")
	}
	if err := s.repeat(ctx, func(ctx context.Context, c *api.Client) (err error) {
		leader, err = c.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
		return err
	}); err != nil {
		return nil, s.wrap(err, "ask for the leader")
	}
	var members []objdb.Member
	for _, a := range agents {
		if a.Tags["role"] != "consul" {
			continue // an agent that keeps nothing
		}
		m := objdb.Member{Name: a.Name, Leads: leader == net.JoinHostPort(a.Addr, a.Tags["port"])}
		if a.Status != 1 {
			if m.Err = serf[a.Status]; m.Err == "" {
				m.Err = fmt.Sprint("its state is ", a.Status)
			}
		}
		members = append(members, m)
	}
	return members, nil
}
