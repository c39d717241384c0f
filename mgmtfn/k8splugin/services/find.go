package services

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Find tells which Service is meant by its name or by an address, and where connections of a
// client on this host lead. An error is of kind Invalid.
func (w *Watcher) Find(q flowapi.ServiceQuestion) (answer flowapi.ServiceAnswer, err error) {
	proto, ok := flowapi.ProtoNumber(q.Proto)
	if !ok || (q.Name == "") == !q.Address.IsValid() {
		return answer, errs.New(errs.Invalid, "expected a protocol and either a name or an address, got %.40q, %.80q and %v", q.Proto, q.Name, q.Address)
	}
	env := w.surroundings()
	key := q.Name
	if key == "" {
		key = w.keyAt(q.Address, env)
	}
	for _, s := range w.translate(key, env) {
		if q.Address.IsValid() && !slices.Contains(s.VIPs, q.Address) {
			continue
		}
		answer.Name, answer.Addresses = strings.TrimSuffix(s.ID, externalSuffix), append(answer.Addresses, s.VIPs...)
		for _, p := range s.Ports {
			if p.Proto == proto && p.Port == q.Port {
				answer.Providers = append(answer.Providers, forClient(s, p, q.Tenant)...)
			}
		}
	}
	return answer, nil
}

// forClient are the providers that a new connection of a tenant's container may lead to.
func forClient(s drivers.Service, p drivers.ServicePort, tenant string) (out []netip.AddrPort) {
	for _, provider := range p.Providers {
		if !provider.Draining && (provider.Tenant == "" || provider.Tenant == tenant) && (provider.Local || !s.OnlyLocal) {
			out = append(out, provider.Addr)
		}
	}
	return out
}

// keyAt is the key of the Service with an address; empty: there is none.
func (w *Watcher) keyAt(a netip.Addr, env surroundings) string {
	for _, o := range w.services.GetStore().List() {
		s, ok := o.(*corev1.Service)
		if !ok || !ours(s) {
			continue
		}
		own, external := vips(s, env)
		if slices.Contains(own, a) || slices.Contains(external, a) {
			return s.Namespace + "/" + s.Name
		}
	}
	return ""
}
