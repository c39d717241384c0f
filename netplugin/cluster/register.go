package cluster

import (
	"context"
	"net/netip"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/retry"
)

// Host is what an agent registers.
type Host struct {
	Label        string
	CtrlIP, VTEP netip.Addr
	VXLANPort    int
}

// presentEvery is how often an agent says that it lives: three times before it would count as
// gone.
const presentEvery = objdb.ServiceTTL / 3

// Register keeps the agent registered until ctx ends, and then has the entries removed at
// once. netmaster writes them; they show that the agent lives, and nothing is forwarded
// because of them.
func Register(ctx context.Context, m *Master, h Host, log logrus.FieldLogger) error {
	me, said := masterapi.Presence{CtrlIP: h.CtrlIP, VTEP: h.VTEP, VXLANPort: h.VXLANPort}, false
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, presentEvery)
		err := m.present(try, h.Label, me)
		cancel()
		if err != nil && !said && ctx.Err() == nil {
			log.WithError(err).Warn("cannot register this host with netmaster; retrying")
		}
		said = err != nil
		retry.Pause(ctx, presentEvery)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := m.leave(last, h.Label); err != nil {
		log.WithError(err).Debug("cannot unregister this host; netmaster does when it hears no more of it")
	}
	return ctx.Err()
}
