package cluster

import (
	"context"
	"net/netip"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
)

// Host is what an agent registers.
type Host struct {
	Label        string
	CtrlIP, VTEP netip.Addr
	VXLANPort    int
}

// services lists the registry entries of an agent.
func (h Host) services() []objdb.ServiceInfo {
	entry := func(name string, addr netip.Addr, port int) objdb.ServiceInfo {
		return objdb.ServiceInfo{ServiceName: name, HostAddr: addr.String(), Port: port, Hostname: h.Label}
	}
	return []objdb.ServiceInfo{
		entry(clusterapi.AgentService, h.CtrlIP, clusterapi.AgentVXLANPort),
		entry(clusterapi.AgentService, h.CtrlIP, clusterapi.AgentVLANPort),
		entry(clusterapi.VTEPService, h.VTEP, h.VXLANPort),
	}
}

// Register keeps the agent registered until ctx ends, and then takes the entries away
// at once. They show that the agent lives; nothing is forwarded because of them.
func Register(ctx context.Context, store objdb.Store, h Host, log logrus.FieldLogger) error {
	var all []*objdb.Registration
	for _, info := range h.services() {
		all = append(all, objdb.Register(ctx, store, info))
	}
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, r := range all {
		if err := r.Close(last); err != nil {
			log.WithError(err).Debug("cannot remove the registry entry; it expires by itself")
		}
	}
	return ctx.Err()
}
