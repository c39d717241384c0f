// Package clusterapi holds what agents and netmasters tell each other directly, beside
// the records in the store: reports of agents to every netmaster, requests of
// netmasters to agents, and the state of the cluster that users see.
//
// Both directions are HTTP with JSON bodies on the ports at which the original spoke
// its RPC; an agent finds the netmasters as instances of the service netmaster.rpc, a
// netmaster finds the agents as instances of netplugin.
package clusterapi

import "time"

// Ports of the control channel. An agent has two, by which tools recognise it, and
// answers the same at both.
const (
	MasterPort     = 9001
	AgentVXLANPort = 9002
	AgentVLANPort  = 9003
)

// Registry names.
const (
	MasterService = "netmaster.rpc"
	AgentService  = "netplugin"
	VTEPService   = "netplugin.vtep"
)

// Paths of the control channel.
const (
	PathReport   = "/report"   // POST Report, to a netmaster
	PathAnnounce = "/announce" // POST AnnounceRequest, to an agent
	PathStatus   = "/status"   // GET, from an agent: its Report as of now
)

// Paths of netmaster's API about the cluster.
const (
	PathCluster = "/api/v1/cluster/"         // GET Cluster
	PathApplied = "/api/v1/cluster/applied/" // GET Applied; queries QueryRevision, QuerySettings, QueryWait
)

// PathGarbage is what is left of hosts that are down: GET lists it, POST removes it; both
// answer with []GoneHost. Queries: QueryHost, QueryOlder.
const (
	PathGarbage = "/api/v1/cluster/garbage/"
	QueryHost   = "host"  // one host only
	QueryOlder  = "older" // away for at least that long, as time.Duration text; default DefaultOlder
)

// DefaultOlder is how long a host must have been down for garbage collection by hand.
const DefaultOlder = 10 * time.Minute

// Queries of PathApplied.
const (
	QueryRevision = "revision" // of the state, 0: none
	QuerySettings = "settings" // of the global settings, 0: none
	QueryWait     = "wait"     // how long to wait for the hosts, as time.Duration text; at most MaxWait
)

// MaxWait bounds how long one request waits.
const MaxWait = 8 * time.Second

// Heartbeat is how often an agent reports when nothing changes. A host that is
// registered and has not reported for StaleAfter is silent.
const (
	Heartbeat  = 10 * time.Second
	StaleAfter = 3 * Heartbeat
)

// MaxBody bounds a body of the control channel, in bytes.
const MaxBody = 64 << 10

// Report is what an agent says of itself.
type Report struct {
	Host string `json:"host"` // its label
	// Instance grows from one process of this host's agent to the next, Sequence from
	// report to report of one process: an older report never replaces a newer one.
	Instance int64  `json:"instance"`
	Sequence uint64 `json:"sequence"`
	Version  string `json:"version"`
	VTEP     string `json:"vtep"`
	CtrlIP   string `json:"ctrlIP"`
	// Revision is the store revision up to which the state is realised in the switch,
	// Settings that of the global settings. 0: none yet.
	Revision int64 `json:"revision"`
	Settings int64 `json:"settings"`
	// Flows is how many flows the state compiles to on this host, Digest a checksum of
	// them, in hexadecimal: equal flows have equal digests, whatever their order.
	Flows  int    `json:"flows"`
	Digest string `json:"digest"`
	// Reasons are what keeps the agent from serving, one line each; none: it is well.
	Reasons []string `json:"reasons"`
}

// ReportResponse tells an agent how far apart its reports should be, so that those of
// all hosts together do not overwhelm a netmaster.
type ReportResponse struct {
	SpacingMS int `json:"spacingMS"` // milliseconds
}

// AnnounceRequest asks an agent to announce its endpoints in the underlay, by
// gratuitous ARP and unsolicited neighbor advertisements.
type AnnounceRequest struct {
	Group int `json:"group"` // number of the group whose endpoints are meant; 0: all
}

// AnnounceResponse says how many endpoints that concerns.
type AnnounceResponse struct {
	Endpoints int `json:"endpoints"`
}

// What a host is, in Host.State.
const (
	Up       = "up"       // registered, and its agent reports that all is well
	Degraded = "degraded" // registered, and its agent says what is amiss
	Silent   = "silent"   // registered, but its agent does not report to this netmaster
	Gone     = "gone"     // not registered
)

// Host is a host as the leading netmaster sees it.
type Host struct {
	Host     string `json:"host"`
	State    string `json:"state"`
	CtrlIP   string `json:"ctrlIP"`
	VTEP     string `json:"vtep"`
	Version  string `json:"version"`
	Revision int64  `json:"revision"`
	Settings int64  `json:"settings"`
	// Lag is by how many store revisions the host is behind what this leader has
	// written for agents; 0 when it has all.
	Lag       int64    `json:"lag"`
	Flows     int      `json:"flows"`
	Digest    string   `json:"digest"`
	Endpoints int      `json:"endpoints"` // homed on the host
	Reasons   []string `json:"reasons"`
	// Reported is when the last report came, Gone since when the host is not registered,
	// CleanUp when the endpoints of a host that stays down are removed; RFC 3339, or
	// empty.
	Reported string `json:"reported"`
	Gone     string `json:"gone"`
	CleanUp  string `json:"cleanUp"`
}

// Cluster is the answer to PathCluster.
type Cluster struct {
	// Revision and Settings are what a host has to have applied to be up to date.
	Revision int64  `json:"revision"`
	Settings int64  `json:"settings"`
	Hosts    []Host `json:"hosts"` // sorted by label
}

// GoneHost is a host that was down, and what is removed with it.
type GoneHost struct {
	Host      string   `json:"host"`
	Gone      string   `json:"gone"`      // since when, RFC 3339
	Endpoints []string `json:"endpoints"` // ids, sorted
}

// Applied is the answer to PathApplied: which live hosts have a change, and which have
// not.
type Applied struct {
	Hosts   int       `json:"hosts"` // live ones
	Missing []Missing `json:"missing"`
}

// Missing is a live host that has not applied a change yet.
type Missing struct {
	Host    string   `json:"host"`
	Reasons []string `json:"reasons"` // what is amiss there, if the agent says so
}
