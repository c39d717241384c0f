package intent

import (
	"net/netip"
	"sync"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/utils/signal"
)

// model is everything netmaster knows. The tables mirror the store; spaces and pools index
// the claims in them.
type model struct {
	cfg Config
	mu  sync.RWMutex

	tables
	all     []planned    // every table
	kinds   []registered // every kind of objects
	sources []source     // how the tables are read, in order

	spaces    map[string]*ipam.Space // by network id
	extentsOf map[string]*extents    // of the spaces, by tenant
	pools     map[string]*tags.Pool
	texts     texts // of the tables' rows

	// changed is broadcast with each commit.
	changed signal.Signal

	// unreadable are store keys whose values could not be decoded, with the reason. They
	// are left alone. Set at load, constant afterwards.
	unreadable map[string]string
}

// tables are the tables of objects and records, with their indexes.
type tables struct {
	globals   globalTables
	gateways  *objects[contivmodel.AciGw, contivmodel.AciGwOper]
	tenants   *objects[contivmodel.Tenant, contivmodel.TenantOper]
	profiles  profileTables
	policies  policyTables
	contracts contractsTables
	networks  networkTables
	groups    groupTables
	rules     ruleTables
	apps      appTables
	services  serviceTables
	bgps      bgpTables

	endpoints endpointTables
	addrs     addressTables
	late      lateTables
	tags      tagTables
}

func newModel(cfg Config) *model {
	m := &model{
		cfg:        cfg,
		spaces:     map[string]*ipam.Space{},
		extentsOf:  map[string]*extents{},
		unreadable: map[string]string{},

		pools: map[string]*tags.Pool{
			tags.VLAN:    tags.NewPool(contivmodel.TagRange{}, contivmodel.MaxVLAN),
			tags.VXLAN:   tags.NewPool(contivmodel.TagRange{}, 0),
			tags.Local:   tags.NewPool(tags.LocalRange(), tags.NameServerVLAN),
			tags.GroupID: tags.NewPool(tags.GroupRange(), 0),
		},
	}
	// In the order in which they are read: addresses need their networks.
	m.globals = registerGlobals(m)
	m.gateways = registerGateways(m)
	m.tenants = registerTenants(m)
	m.profiles = registerProfiles(m)
	m.policies = registerPolicies(m)
	m.contracts = registerContracts(m)
	m.networks = registerNetworks(m)
	m.groups = registerGroups(m)
	m.rules = registerRules(m)
	m.apps = registerApps(m)
	m.services = registerServices(m)
	m.bgps = registerBgps(m)
	registerReserved(m, contivmodel.VolumeKind())
	registerReserved(m, contivmodel.VolumeProfileKind())
	m.endpoints = newEndpoints(m)
	m.addrs = newAddresses(m)
	m.late = newLateReleases(m)
	m.tags = newTags(m)
	return m
}

// committed is a view of the tables without what the writer is planning. The caller holds mu,
// for reading at least.
func (m *model) committed() *tx {
	v := m.tables // with the indexes, which have committed rows only
	v.globals.objects, v.globals.settings = m.globals.committed(), m.globals.settings.committed()
	v.gateways, v.tenants = m.gateways.committed(), m.tenants.committed()
	v.profiles.objects, v.policies.objects = m.profiles.committed(), m.policies.committed()
	v.apps.objects, v.contracts.objects = m.apps.committed(), m.contracts.committed()
	v.groups.objects, v.groups.records = m.groups.committed(), m.groups.records.committed()
	v.networks.objects, v.networks.records = m.networks.committed(), m.networks.records.committed()
	v.rules.objects, v.rules.records = m.rules.committed(), m.rules.records.committed()
	v.services.objects, v.services.records, v.services.providers = m.services.committed(), m.services.records.committed(), m.services.providers.committed()
	v.bgps.objects, v.bgps.records = m.bgps.committed(), m.bgps.records.committed()
	v.endpoints.table, v.addrs.table = m.endpoints.committed(), m.addrs.committed()
	v.late.table, v.tags.table = m.late.committed(), m.tags.committed()
	return &tx{model: &model{tables: v}}
}

// modelKey is the key of an object that belongs to a tenant.
func modelKey(tenant, name string) string { return tenant + ":" + name }

// Owners, as written in claims.
const (
	ownerGateway  = "gateway"
	ownerReserved = "reserved/"
)

func ownerEndpoint(id string) string { return "endpoint/" + id }
func ownerGroup(id string) string    { return "group/" + id }
func ownerNetwork(id string) string  { return "network/" + id }

// parseAddr parses an address in a claim or record.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == "" && !a.Is4In6()
}
