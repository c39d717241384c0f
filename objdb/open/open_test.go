package open_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb/open"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/errs"
)

// TestStore: the options choose the client, which says where it looked.
func TestStore(t *testing.T) {
	for kind, o := range map[string]cliconf.Store{
		"etcd":   {Etcd: "http://127.0.0.1:1"},
		"consul": {Consul: "http://127.0.0.1:1,http://127.0.0.1:2", Token: "secret"},
	} {
		t.Run(kind, func(t *testing.T) {
			if err := o.Validate(); err != nil {
				t.Fatal(err)
			}
			s, err := open.Store(o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err = s.Health(ctx)
			if err == nil || !strings.Contains(err.Error(), kind+" at http://127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
				t.Errorf("Health: %v", err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, o := range map[string]cliconf.Store{
		"embedded":                   {Kind: cliconf.StoreEmbedded},
		"consul authority not there": {Consul: "https://127.0.0.1:1", ConsulTLS: cliconf.TLS{CA: "/nonexistent"}},
		"etcd authority not there":   {Etcd: "https://127.0.0.1:1", EtcdTLS: cliconf.TLS{CA: "/nonexistent"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := o.Validate(); err != nil {
				t.Fatal(err)
			}
			if s, err := open.Store(o); !errs.Is(err, errs.Invalid) {
				t.Errorf("Store = %v, %v, want an Invalid error", s, err)
			}
		})
	}
}
