package consul_test

import (
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/contract"
)

func TestContract(t *testing.T) {
	p := newProcess(t)
	p.start(t)
	contract.Run(t, func(t *testing.T) objdb.Store {
		return connect(t, consul.Config{Endpoints: []string{p.url()}})
	}, contract.MinLease(consul.MinLease), contract.NewestOnly())
}
