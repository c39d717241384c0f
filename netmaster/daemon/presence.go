package daemon

import (
	"context"
	"net/netip"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
)

// presence is this netmaster's entries in the registry.
type presence []*objdb.Registration

// register enters where the API is served and, if it is, where agents report.
func (d *Daemon) register(ctx context.Context, store objdb.Store) presence {
	entry := func(name string, at netip.AddrPort) *objdb.Registration {
		return objdb.Register(ctx, store, objdb.ServiceInfo{
			ServiceName: name, Role: objdb.RoleFollower, Version: d.cfg.Version.Version, HostAddr: at.Addr().String(), Port: int(at.Port()),
		}, func(err error) {
			d.log.WithError(err).WithField("service", name).Warn("not registered in the store; other hosts may not find this netmaster; retrying")
		})
	}
	p := presence{entry("netmaster", d.address)}
	if d.cfg.RPC == nil {
		return p
	}
	at, err := netip.ParseAddrPort(d.cfg.RPC.Addr().String())
	if err != nil {
		d.log.WithError(err).Error("cannot register the address for agent reports")
		return p
	}
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(d.address.Addr(), at.Port())
	}
	return append(p, entry(clusterapi.MasterService, at))
}

// setRole changes what the registry says this netmaster is.
func (p presence) setRole(role string) {
	for _, r := range p {
		r.SetRole(role)
	}
}

// close leaves the registry; ctx bounds the wait for the store.
func (p presence) close(ctx context.Context, log logrus.FieldLogger) {
	for _, r := range p {
		if err := r.Close(ctx); err != nil {
			log.WithError(err).Warn("cannot remove the registration; it expires with its lease")
		}
	}
}
