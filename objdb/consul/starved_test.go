package consul_test

import (
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/internal/servertest"
)

// TestStarvedLeader: no lock is lost because the machine has too much to do.
func TestStarvedLeader(t *testing.T) {
	p := newProcess(t)
	p.Start(t)
	servertest.LeadStarved(t, func(t testing.TB) objdb.Store { return connect(t, consul.Config{Endpoints: []string{p.URL()}}) }, consul.MinLease)
}
