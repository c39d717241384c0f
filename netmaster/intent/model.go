package intent

import (
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/signal"
)

// model is everything netmaster knows. The tables mirror the store; spaces and pools
// are the writer's indexes over the claims in them.
type model struct {
	mu sync.RWMutex

	tenants  *table[string, contivmodel.Tenant]        // by model key
	networks *table[string, contivmodel.Network]       // by model key
	groups   *table[string, contivmodel.EndpointGroup] // by model key
	globals  *table[string, contivmodel.Global]        // by model key
	profiles *table[string, contivmodel.Netprofile]    // by model key
	policies *table[string, contivmodel.Policy]        // by model key
	rules    *table[string, contivmodel.Rule]          // by model key

	apps      *table[string, contivmodel.AppProfile]        // by model key
	contracts *table[string, contivmodel.ExtContractsGroup] // by model key
	bgps      *table[string, contivmodel.Bgp]               // by model key
	gateways  *table[string, contivmodel.AciGw]             // by model key
	services  *table[string, contivmodel.ServiceLB]         // by model key

	settings  *table[string, state.Global]        // one row, under ""
	netStates *table[string, state.Network]       // by id
	grpStates *table[string, state.EndpointGroup] // by id
	endpoints *table[string, state.Endpoint]      // by id
	addrs     *table[claimKey, state.AddressClaim]
	late      *table[claimKey, state.LateReleases]
	tags      *table[tagKey, state.TagClaim]
	ruleRecs  *table[string, state.PolicyRule]   // by rule id
	bgpRecs   *table[string, state.Bgp]          // by host label
	svcRecs   *table[string, state.ServiceLB]    // by service id
	provLists *table[string, state.ProviderList] // by service id

	networksOfTenant *index[string, contivmodel.Network]
	groupsOfTenant   *index[string, contivmodel.EndpointGroup]
	groupsOfNetwork  *index[string, contivmodel.EndpointGroup] // by the network's model key
	endpointsOfNet   *index[string, state.Endpoint]            // by network id
	endpointsOfGroup *index[string, state.Endpoint]            // by group id
	endpointsOfHost  *index[string, state.Endpoint]            // by the host's label
	endpointsOfMAC   *index[string, state.Endpoint]            // by macKey
	addrsOfNet       *index[claimKey, state.AddressClaim]
	addrsReservedAs  *index[claimKey, state.AddressClaim] // by the reservation's name
	lateOfNet        *index[claimKey, state.LateReleases]
	tagsOfPool       *index[tagKey, state.TagClaim]

	profilesOfTenant  *index[string, contivmodel.Netprofile]
	policiesOfTenant  *index[string, contivmodel.Policy]
	groupsOfProfile   *index[string, contivmodel.EndpointGroup] // by the profile's model key
	groupsOfPolicy    *index[string, contivmodel.EndpointGroup] // by the policy's model key
	appsOfTenant      *index[string, contivmodel.AppProfile]
	appsOfGroup       *index[string, contivmodel.AppProfile] // by the group's model key
	contractsOfTenant *index[string, contivmodel.ExtContractsGroup]
	groupsOfContracts *index[string, contivmodel.EndpointGroup] // by the contracts group's model key
	servicesOfTenant  *index[string, contivmodel.ServiceLB]
	servicesOfNetwork *index[string, contivmodel.ServiceLB] // by the network's model key
	svcRecsOfTenant   *index[string, state.ServiceLB]
	endpointsOfCont   *index[string, state.Endpoint]   // by container id
	rulesOfPolicy     *index[string, contivmodel.Rule] // by the policy's model key
	rulesOnGroup      *index[string, contivmodel.Rule] // by the model key of the group they name
	rulesOnNetwork    *index[string, contivmodel.Rule] // by the model key of the network they name

	spaces    map[string]*ipam.Space // by network id
	extentsOf map[string]*extents    // of the spaces, by tenant
	pools     map[string]*tags.Pool

	// changed is closed, and another one made, with each commit.
	changed signal.Signal

	// unreadable are store keys whose values could not be understood, with the reason.
	// They are left alone. Set at load, constant afterwards.
	unreadable map[string]string
}

// claimKey names an address (canonical text) or a pool (first-last) of a network.
type claimKey struct{ net, what string }

// tagKey names a tag of a pool.
type tagKey struct {
	pool string
	tag  int
}

func newModel() *model {
	in := func(prefix string) func(string) string { return func(k string) string { return prefix + k } }
	obj := func(typ string) func(string) string { return in(state.ModelRoot + typ + "/") }
	m := &model{
		tenants:    newTable[string, contivmodel.Tenant](obj(contivmodel.TenantKind().Type)),
		networks:   newTable[string, contivmodel.Network](obj(contivmodel.NetworkKind().Type)),
		groups:     newTable[string, contivmodel.EndpointGroup](obj(contivmodel.EndpointGroupKind().Type)),
		globals:    newTable[string, contivmodel.Global](obj(contivmodel.GlobalKind().Type)),
		profiles:   newTable[string, contivmodel.Netprofile](obj(contivmodel.NetprofileKind().Type)),
		policies:   newTable[string, contivmodel.Policy](obj(contivmodel.PolicyKind().Type)),
		rules:      newTable[string, contivmodel.Rule](obj(contivmodel.RuleKind().Type)),
		apps:       newTable[string, contivmodel.AppProfile](obj(contivmodel.AppProfileKind().Type)),
		contracts:  newTable[string, contivmodel.ExtContractsGroup](obj(contivmodel.ExtContractsGroupKind().Type)),
		bgps:       newTable[string, contivmodel.Bgp](obj(contivmodel.BgpKind().Type)),
		gateways:   newTable[string, contivmodel.AciGw](obj(contivmodel.AciGwKind().Type)),
		services:   newTable[string, contivmodel.ServiceLB](obj(contivmodel.ServiceLBKind().Type)),
		settings:   newTable[string, state.Global](in(state.GlobalKey)),
		netStates:  newTable[string, state.Network](in(state.NetworkRoot)),
		grpStates:  newTable[string, state.EndpointGroup](in(state.GroupRoot)),
		endpoints:  newTable[string, state.Endpoint](in(state.EndpointRoot)),
		addrs:      newTable[claimKey, state.AddressClaim](func(k claimKey) string { return state.IPAMRoot + k.net + "/" + k.what }),
		late:       newTable[claimKey, state.LateReleases](func(k claimKey) string { return state.LateReleasesRt + k.net + "/" + k.what }),
		tags:       newTable[tagKey, state.TagClaim](func(k tagKey) string { return state.TagRoot + k.pool + "/" + strconv.Itoa(k.tag) }),
		ruleRecs:   newTable[string, state.PolicyRule](in(state.PolicyRuleRoot)),
		bgpRecs:    newTable[string, state.Bgp](in(state.BgpRoot)),
		svcRecs:    newTable[string, state.ServiceLB](in(state.ServiceLBRoot)),
		provLists:  newTable[string, state.ProviderList](in(state.ProviderRoot)),
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
	m.networksOfTenant = m.networks.indexed(func(_ string, n *contivmodel.Network) string { return n.TenantName })
	m.groupsOfTenant = m.groups.indexed(func(_ string, g *contivmodel.EndpointGroup) string { return g.TenantName })
	m.groupsOfNetwork = m.groups.indexed(func(_ string, g *contivmodel.EndpointGroup) string {
		return modelKey(g.TenantName, g.NetworkName)
	})
	m.endpointsOfNet = m.endpoints.indexed(func(_ string, e *state.Endpoint) string { return e.NetID })
	m.endpointsOfGroup = m.endpoints.indexed(func(_ string, e *state.Endpoint) string { return e.EndpointGroupKey })
	m.endpointsOfHost = m.endpoints.indexed(func(_ string, e *state.Endpoint) string { return e.HomingHost })
	m.endpointsOfMAC = m.endpoints.indexed(func(_ string, e *state.Endpoint) string { return macKey(e.NetID, e.MacAddress) })
	m.addrsOfNet = m.addrs.indexed(func(k claimKey, _ *state.AddressClaim) string { return k.net })
	m.addrsReservedAs = m.addrs.indexedEach(func(_ claimKey, c *state.AddressClaim) []string {
		if c.Reservation == "" {
			return nil
		}
		return []string{c.Reservation}
	})
	m.lateOfNet = m.late.indexed(func(k claimKey, _ *state.LateReleases) string { return k.net })
	m.tagsOfPool = m.tags.indexed(func(k tagKey, _ *state.TagClaim) string { return k.pool })
	m.profilesOfTenant = m.profiles.indexed(func(_ string, p *contivmodel.Netprofile) string { return p.TenantName })
	m.policiesOfTenant = m.policies.indexed(func(_ string, p *contivmodel.Policy) string { return p.TenantName })
	m.groupsOfProfile = m.groups.indexedEach(func(_ string, g *contivmodel.EndpointGroup) []string {
		return inTenant(g.TenantName, g.NetProfile)
	})
	m.groupsOfPolicy = m.groups.indexedEach(func(_ string, g *contivmodel.EndpointGroup) []string {
		return inTenant(g.TenantName, g.Policies...)
	})
	m.appsOfTenant = m.apps.indexed(func(_ string, p *contivmodel.AppProfile) string { return p.TenantName })
	m.appsOfGroup = m.apps.indexedEach(func(_ string, p *contivmodel.AppProfile) []string {
		return inTenant(p.TenantName, p.EndpointGroups...)
	})
	m.contractsOfTenant = m.contracts.indexed(func(_ string, c *contivmodel.ExtContractsGroup) string { return c.TenantName })
	m.groupsOfContracts = m.groups.indexedEach(func(_ string, g *contivmodel.EndpointGroup) []string {
		return inTenant(g.TenantName, g.ExtContractsGrps...)
	})
	m.servicesOfTenant = m.services.indexed(func(_ string, s *contivmodel.ServiceLB) string { return s.TenantName })
	m.servicesOfNetwork = m.services.indexed(func(_ string, s *contivmodel.ServiceLB) string { return modelKey(s.TenantName, s.NetworkName) })
	m.svcRecsOfTenant = m.svcRecs.indexed(func(_ string, s *state.ServiceLB) string { return s.Tenant })
	m.endpointsOfCont = m.endpoints.indexedEach(func(_ string, e *state.Endpoint) []string {
		if e.ContainerID == "" {
			return nil
		}
		return []string{e.ContainerID}
	})
	m.rulesOfPolicy = m.rules.indexed(func(_ string, r *contivmodel.Rule) string { return modelKey(r.TenantName, r.PolicyName) })
	m.rulesOnGroup = m.rules.indexedEach(func(_ string, r *contivmodel.Rule) []string {
		return inTenant(r.TenantName, r.FromEndpointGroup, r.ToEndpointGroup)
	})
	m.rulesOnNetwork = m.rules.indexedEach(func(_ string, r *contivmodel.Rule) []string {
		return inTenant(r.TenantName, r.FromNetwork, r.ToNetwork)
	})
	return m
}

// tables lists every table, for what is done to all of them.
func (m *model) tables() []planned {
	return []planned{
		m.tenants, m.networks, m.groups, m.globals,
		m.profiles, m.policies, m.rules, m.apps, m.contracts, m.bgps, m.gateways, m.services,
		m.settings, m.netStates, m.grpStates, m.endpoints, m.addrs, m.late, m.tags, m.ruleRecs, m.bgpRecs, m.svcRecs, m.provLists,
	}
}

// committed is a view of the tables that fabric profiles are made of, as everybody sees
// them; for holders of mu.
func (m *model) committed() *tx {
	return &tx{model: &model{
		globals: m.globals.committed(), gateways: m.gateways.committed(), apps: m.apps.committed(), contracts: m.contracts.committed(),
		groups: m.groups.committed(), grpStates: m.grpStates.committed(), netStates: m.netStates.committed(),
		rules: m.rules.committed(), rulesOfPolicy: m.rulesOfPolicy, rulesOnGroup: m.rulesOnGroup,
	}}
}

// modelKey is the key of an object that belongs to a tenant.
func modelKey(tenant, name string) string { return tenant + ":" + name }

// inTenant returns the keys of what is named in a tenant, without empty names and
// repetitions.
func inTenant(tenant string, names ...string) []string {
	var keys []string
	for _, name := range names {
		if key := modelKey(tenant, name); name != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Owners, as claims spell them.
const (
	ownerGateway  = "gateway"
	ownerReserved = "reserved/"
)

func ownerEndpoint(id string) string { return "endpoint/" + id }
func ownerGroup(id string) string    { return "group/" + id }
func ownerNetwork(id string) string  { return "network/" + id }

// parseAddr reads an address of a claim or record.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == "" && !a.Is4In6()
}
