package ofnet

// table names a table; its number in a bridge follows from the tables in use.
type table uint8

// The tables, in the order packets pass them.
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
	tableNeighbour
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
	tableAllowOut
	tableEndpointPolicyIn
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
	numTables
)

var tableNames = [numTables]string{
	"classify", "tunnel", "tunnel-net", "uplink", "host-in", "host-check", "host-track", "host-deliver",
	"frame", "source", "source-nd", "neighbour", "arp", "arp-reply", "nd", "nd-reply", "nd-finish", "dns", "dns-serve",
	"service", "service-fragment", "service-new", "service-state", "service-affinity", "service-select", "service-slot", "service-nat", "service-learn", "service-count", "service-mixed", "service-direct", "service-port",
	"service-back", "service-out", "route", "reach", "external", "track",
	"guard", "state-new", "state", "guard-out", "allow-out", "guard-in", "allow-in", "group-source", "group-dest", "policy", "deny",
	"reject", "reject-back", "reject-out", "service-reply", "hop", "deliver", "uplink-out", "mac", "switch", "host-out", "host-new", "host-emit",
}

func (t table) String() string { return tableNames[t] }

// number gives the tables of the features consecutive numbers from 0.
func number(features []feature) (ids [numTables]uint8, names []string) {
	var used [numTables]bool
	for _, f := range features {
		for _, t := range f.tables() {
			used[t] = true
		}
	}
	for t := range numTables {
		if used[t] {
			ids[t] = uint8(len(names))
			names = append(names, t.String())
		}
	}
	return ids, names
}
