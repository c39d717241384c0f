package attachment

import (
	"testing"

	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/utils/errs"
)

// What is missing is named together with the command that makes it.
func TestMissingPlaces(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	gone := errs.New(errs.NotFound, "key not found")
	known := Place{Tenant: w.Net.Tenant, Network: w.Net.Name, Group: "web"}
	for _, c := range []struct {
		place Place
		want  string
	}{
		{Place{Tenant: "blue", Network: "net9"}, "network net9 of tenant blue not found, create it with: netctl net create -t blue -s SUBNET -g GATEWAY net9: key not found"},
		{known, "group web of tenant " + known.Tenant + " not found, create it with: netctl group create -t " + known.Tenant + " " + known.Network + " web: key not found"},
	} {
		if err := a.missing(gone, c.place); err.Error() != c.want || !errs.Is(err, errs.NotFound) {
			t.Errorf("%+v: %v, expected %s", c.place, err, c.want)
		}
	}
	if err := a.missing(nil, known); err != nil {
		t.Errorf("error %v out of none", err)
	}
}
