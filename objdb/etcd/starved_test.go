package etcd_test

import (
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/objdb/internal/servertest"
)

// TestStarvedLeader: no lock is lost because the machine has too much to do.
func TestStarvedLeader(t *testing.T) {
	p := newProcess(t)
	p.Start(t)
	servertest.LeadStarved(t, func(t testing.TB) objdb.Store { return connect(t, etcd.Config{Endpoints: []string{p.URL()}}) }, 5*time.Second)
}
