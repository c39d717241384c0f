package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/contiv/netplugin/objdb"
)

// forgetAfter is how long a netmaster that is not registered any more is remembered.
const forgetAfter = 24 * time.Hour

// Master is a netmaster that is registered, or was.
type Master struct {
	Address string    // "ip:port" of its API
	Version string    // empty: it does not tell
	Gone    time.Time // since when it is not registered; zero: it is
}

// SawMasters takes in which netmasters are registered.
func (m *Members) SawMasters(list []objdb.ServiceInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for address, known := range m.masters {
		if known.Gone.IsZero() {
			known.Gone = now
			m.masters[address] = known
		}
	}
	for _, i := range list {
		m.masters[i.Endpoint()] = Master{Address: i.Endpoint(), Version: i.Version}
	}
	for address, known := range m.masters {
		if !known.Gone.IsZero() && now.Sub(known.Gone) > forgetAfter {
			delete(m.masters, address)
		}
	}
}

// Masters lists the netmasters that are registered, or have been within a day, by address.
func (m *Members) Masters() []Master {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Master
	for _, known := range m.masters {
		if known.Gone.IsZero() || m.now().Sub(known.Gone) <= forgetAfter {
			all = append(all, known)
		}
	}
	slices.SortFunc(all, func(a, b Master) int { return cmp.Compare(a.Address, b.Address) })
	return all
}
