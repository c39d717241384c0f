package ofnet

// table identifies a table; its number in a bridge depends on which tables are in use.
type table uint8

// The tables, in the order in which packets pass them.
const (
	tableClassify table = iota
	tableTunnel
	tableTunnelNet
	tableUplink
	tableHostIn
	tableHostCheck
	tableHostTrack
	tableHostDeliver
	tableFrame
	tableSource
	tableSourceND
	tableNeighbor
	tableARP
	tableARPReply
	tableND
	tableNDReply
	tableNDFinish
	tableDNS
	tableDNSServe
	tableService
	tableServiceFragment
	tableServiceNew
	tableServiceState
	tableServiceAffinity
	tableServiceSelect
	tableServiceSlot
	tableServiceNAT
	tableServiceLearn
	tableServiceCount
	tableServiceMixed
	tableServiceDirect
	tableServicePort
	tableServiceBack
	tableServiceOut
	tableRoute
	tableReach
	tableExternal
	tableTrack
	tableEndpointPolicy
	tableStateNew
	tableState
	tableEndpointPolicyOut
	tablePeerOut
	tableAllowOut
	tableEndpointPolicyIn
	tablePeerIn
	tableAllowIn
	tableGroupSource
	tableGroupDest
	tablePolicy
	tableDeny
	tableReject
	tableRejectBack
	tableRejectOut
	tableServiceReply
	tableHop
	tableDeliver
	tableUplinkOut
	tableMAC
	tableSwitch
	tableHostOut
	tableHostNew
	tableHostEmit
	tableDenied
	numTables
)

// stage is a part of a packet's path. Features continue with stages rather than with tables
// of other features, as modes have different tables.
type stage uint8

// The stages, in the order in which packets pass them. The host's own packets have one of
// their own.
const (
	stageClassify stage = iota // where does the packet come from?
	stageHost                  // what the host sends to its containers
	stageEntry                 // packets of containers: own addresses? ARP or neighbor discovery?
	stageService               // for a service? translate the destination
	stageForward               // who is the receiver?
	stagePolicy                // do the rules allow it?
	stageReply                 // a reply of a service? translate the source
	stageOutput                // out of the port
	numStages
)

var stageNames = [numStages]string{"classify", "host", "entry", "service", "forward", "policy", "reply", "output"}

func (s stage) String() string { return stageNames[s] }

// tableInfo describes a table.
type tableInfo struct {
	name  string
	stage stage
	asks  string
}

var tableInfos = [numTables]tableInfo{
	tableClassify:          {"classify", stageClassify, "which port, network and VRF does the packet come from?"},
	tableTunnel:            {"tunnel", stageClassify, "is it from a host of the cluster?"},
	tableTunnelNet:         {"tunnel-net", stageClassify, "which network is it of? is it for the host?"},
	tableUplink:            {"uplink", stageClassify, "which network is its VLAN of? is it for a router?"},
	tableHostIn:            {"host-in", stageHost, "which container is the host's packet for?"},
	tableHostCheck:         {"host-check", stageHost, "are that container's connections tracked?"},
	tableHostTrack:         {"host-track", stageHost, "is it a known connection of the host? else remember it"},
	tableHostDeliver:       {"host-deliver", stageHost, "to the container"},
	tableFrame:             {"frame", stageEntry, "may a container send such a frame at all?"},
	tableSource:            {"source", stageEntry, "does it send under its own addresses?"},
	tableSourceND:          {"source-nd", stageEntry, "does its neighbor discovery message name its own addresses?"},
	tableNeighbor:          {"neighbor", stageEntry, "is it ARP or neighbor discovery?"},
	tableARP:               {"arp", stageEntry, "who has the IPv4 address?"},
	tableARPReply:          {"arp-reply", stageEntry, "turn the request into a reply"},
	tableND:                {"nd", stageEntry, "who has the IPv6 address?"},
	tableNDReply:           {"nd-reply", stageEntry, "turn the solicitation into an advertisement, or pass it to the agent"},
	tableNDFinish:          {"nd-finish", stageEntry, "fill in the link-layer address"},
	tableDNS:               {"dns", stageService, "is it a DNS query? is it for one of our addresses?"},
	tableDNSServe:          {"dns-serve", stageService, "pass the query to the agent"},
	tableService:           {"service", stageService, "is it for a service? look the connection up and translate it"},
	tableServiceFragment:   {"service-fragment", stageService, "which frontend is a fragmented datagram for?"},
	tableServiceNew:        {"service-new", stageService, "is a new connection within its endpoint's rate?"},
	tableServiceState:      {"service-state", stageService, "is it a known connection to a provider? else choose one"},
	tableServiceAffinity:   {"service-affinity", stageService, "which provider did the client have before? (learned)"},
	tableServiceSelect:     {"service-select", stageService, "take that one, or choose"},
	tableServiceSlot:       {"service-slot", stageService, "which provider has the number that was drawn?"},
	tableServiceNAT:        {"service-nat", stageService, "remember the connection and translate its destination"},
	tableServiceLearn:      {"service-learn", stageService, "learn to count it"},
	tableServiceCount:      {"service-count", stageService, "count (learned)"},
	tableServiceMixed:      {"service-mixed", stageService, "does the client know the provider through a service? (learned)"},
	tableServiceDirect:     {"service-direct", stageService, "remember a connection straight to a provider"},
	tableServicePort:       {"service-port", stageService, "give that connection another source port"},
	tableServiceBack:       {"service-back", stageService, "what a container answers that is its own provider"},
	tableServiceOut:        {"service-out", stageService, "is it for the container itself? else forward"},
	tableRoute:             {"route", stageForward, "which endpoint or gateway has the destination address?"},
	tableReach:             {"reach", stageForward, "is it for a port of the control plane?"},
	tableExternal:          {"external", stageForward, "which route leads out?"},
	tableTrack:             {"track", stagePolicy, "does its VRF have rules? look the connection up"},
	tableEndpointPolicy:    {"endpoint-policy", stagePolicy, "do policies of an endpoint apply? look the connection up"},
	tableStateNew:          {"state-new", stagePolicy, "is a new connection within its endpoint's rate?"},
	tableState:             {"state", stagePolicy, "was it admitted under the present rules?"},
	tableEndpointPolicyOut: {"policy-out", stagePolicy, "which rule set holds for the sender?"},
	tablePeerOut:           {"peer-out", stagePolicy, "which class of peers is the receiver in?"},
	tableAllowOut:          {"allow-out", stagePolicy, "does that allow it?"},
	tableEndpointPolicyIn:  {"policy-in", stagePolicy, "which rule set holds for the receiver?"},
	tablePeerIn:            {"peer-in", stagePolicy, "which class of peers is the sender in?"},
	tableAllowIn:           {"allow-in", stagePolicy, "does that allow it?"},
	tableGroupSource:       {"group-source", stagePolicy, "which group is a remote sender in?"},
	tableGroupDest:         {"group-dest", stagePolicy, "which group is the receiver in?"},
	tablePolicy:            {"policy", stagePolicy, "the rules between groups; without a match, allow"},
	tableDeny:              {"deny", stagePolicy, "remember that it is denied"},
	tableReject:            {"reject", stagePolicy, "the agent answers the sender"},
	tableRejectBack:        {"reject-back", stagePolicy, "translate the agent's answer as one of the service"},
	tableRejectOut:         {"reject-out", stagePolicy, "out of the port that the packet came from"},
	tableServiceReply:      {"service-reply", stageReply, "is it from a provider? translate its source to the service"},
	tableHop:               {"hop", stageOutput, "is it another network? then decrement the TTL"},
	tableDeliver:           {"deliver", stageOutput, "out of the port that was chosen"},
	tableUplinkOut:         {"uplink-out", stageOutput, "out of the uplink in use"},
	tableMAC:               {"mac", stageOutput, "which endpoint has the MAC address? else flood"},
	tableSwitch:            {"switch", stageOutput, "the switch's own MAC learning"},
	tableHostOut:           {"host-out", stageOutput, "under which address does the host know the container?"},
	tableHostNew:           {"host-new", stageOutput, "remember a new connection to the host"},
	tableHostEmit:          {"host-emit", stageOutput, "out of the host's port, or back to another host"},
	tableDenied:            {"denied", stageOutput, "the agent logs what was denied"},
}

func (t table) String() string { return tableInfos[t].name }

// layout is the set of tables of a pipeline.
type layout struct {
	ids   [numTables]uint8 // numbers of tables in use
	names []string         // by number
	first [numStages]table // first table of each stage, or of the next stage that has tables
}

// newLayout numbers the tables of the features consecutively from 0.
func newLayout(features []feature) layout {
	var l layout
	var used [numTables]bool
	for _, f := range features {
		for _, t := range f.tables() {
			used[t] = true
		}
	}
	for t := range numTables {
		if used[t] {
			l.ids[t] = uint8(len(l.names))
			l.names = append(l.names, t.String())
		}
	}
	for s := range numStages {
		for t := range numTables {
			if used[t] && tableInfos[t].stage >= s {
				l.first[s] = t
				break
			}
		}
	}
	return l
}

// has reports whether a table is in use.
func (l layout) has(t table) bool {
	n := int(l.ids[t])
	return n < len(l.names) && l.names[n] == t.String()
}
