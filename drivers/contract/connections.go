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
	if n, err := d.Withheld(t.Context()); err != nil || n != 0 {
		t.Errorf("%d packets were withheld, %v; want none", n, err)
	}
}
