package attachment

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Errors about missing objects contain the command that creates them.
func TestMissingNetworks(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	gone := errs.New(errs.NotFound, "key not found")
	known := state.NetworkRef{Tenant: w.Net.Tenant, Network: w.Net.Name, Group: "web"}
	for _, c := range []struct {
		ref  state.NetworkRef
		want string
	}{
		{state.NetworkRef{Tenant: "blue", Network: "net9"}, "network net9 of tenant blue not found, create it with: netctl net create -t blue -s SUBNET -g GATEWAY net9: key not found"},
		{known, "group web of tenant " + known.Tenant + " not found, create it with: netctl group create -t " + known.Tenant + " " + known.Network + " web: key not found"},
	} {
		if err := a.missing(gone, c.ref); err.Error() != c.want || !errs.Is(err, errs.NotFound) {
			t.Errorf("%+v: %v, expected %s", c.ref, err, c.want)
		}
	}
	noTenant := errs.New(errs.NotFound, "key not found: network net9.blue: %s", masterapi.NoTenant("blue"))
	const first = "tenant blue not found, create it with: netctl tenant create blue, then its network with: netctl net create -t blue -s SUBNET -g GATEWAY net9: key not found: "
	if err := a.missing(noTenant, state.NetworkRef{Tenant: "blue", Network: "net9"}); !strings.HasPrefix(err.Error(), first) {
		t.Errorf("without the tenant: %v", err)
	}
	if err := a.missing(nil, known); err != nil {
		t.Errorf("error %v out of none", err)
	}
}

func TestAskedAddresses(t *testing.T) {
	for _, c := range []struct {
		addresses []string
		v4, v6    string
		fails     bool
	}{
		{},
		{addresses: []string{"10.1.1.7"}, v4: "10.1.1.7"},
		{addresses: []string{"2001:db8::7/64", "10.1.1.7/24"}, v4: "10.1.1.7", v6: "2001:db8::7"},
		{addresses: []string{"::ffff:10.1.1.7"}, v4: "10.1.1.7"},
		{addresses: []string{"10.1.1.7", "10.1.1.8/24"}, fails: true},
		{addresses: []string{"10.1.1"}, fails: true},
		{addresses: []string{""}, fails: true},
	} {
		var got endpoint.Spec
		err := askFor(&got, c.addresses)
		if (err != nil) != c.fails || !c.fails && (got.IPv4 != c.v4 || got.IPv6 != c.v6) {
			t.Errorf("%q: %+v, %v; expected %q and %q, an error: %v", c.addresses, got, err, c.v4, c.v6, c.fails)
		}
	}
}
