package fakedriver

import (
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
)

func TestContract(t *testing.T) {
	contract.Run(t, contract.Env{
		New:   func(*testing.T) drivers.Driver { return New() },
		Netns: func(*testing.T) string { return "/run/netns/x" },
	})
}
