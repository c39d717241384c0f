package fakedriver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
)

func TestContract(t *testing.T) {
	var d *Driver
	contract.Run(t, contract.Env{
		New: func(*testing.T, ...drivers.Source) contract.Driver {
			d = New()
			d.Netns(func(path string) bool { _, err := os.Stat(path); return err == nil })
			return d
		},
		Netns: func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "netns")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		},
		LinkExists: func(_ *testing.T, netns, name string) bool { return d.LinkExists(netns, name) },
		Links: func(*testing.T) (names []string) {
			for _, a := range d.Attachments() {
				names = append(names, a.Port.OVSName)
			}
			return names
		},
		Flows: func(_ *testing.T, encap ofnet.Encap) string { return d.Flows(encap) },
	})
}
