package contract

import (
	"testing"

	"github.com/contiv/netplugin/drivers"
)

// noConnections: a switch whose containers have sent nothing tracks nothing and has
// denied nothing, and says so rather than failing.
func noConnections(t *testing.T, env Env) {
	d := start(t, env)
	e := Endpoint(1)
	attach(t, d, e.ID, env.Netns(t))
	d.Apply(e)
	if err := d.Realised(long(t), e.ID); err != nil {
		t.Fatal(err)
	}
	if err := d.Connections(t.Context(), func(c *drivers.Connection) { t.Errorf("there is a connection: %+v", c) }); err != nil {
		t.Error(err)
	}
	counts, err := d.Withheld(t.Context())
	if err != nil {
		t.Error(err)
	}
	for meter, n := range counts {
		if n != 0 {
			t.Errorf("%s withheld %d packets; want none", meter, n)
		}
	}
}
