package doctorapi

import (
	"net/netip"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

// Host is what an agent knows of its host. Fields that an agent of another version does not
// know are zero.
type Host struct {
	Host    string    `json:"host"`
	Version string    `json:"version"` // of netplugin
	Now     time.Time `json:"now"`     // by the host's clock, when the answer was made
	// Checks are those of /readyz: "ok", or what is missing. Notes are what has happened.
	Checks map[string]string `json:"checks"`
	Notes  map[string]string `json:"notes"`
	Switch Switch            `json:"switch"`
	// Certificate is the host's own; nil without TLS.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate is when a certificate counts.
type Certificate struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// CertificateOf returns when the certificate of credentials counts; nil: there is none.
func CertificateOf(c *pki.Credentials) *Certificate {
	if c == nil {
		return nil
	}
	leaf := c.Leaf()
	if leaf == nil {
		return nil
	}
	return &Certificate{From: leaf.NotBefore, To: leaf.NotAfter}
}

// AuthorityOf returns when the certificate authority counts that credentials trust; of several,
// as while one is replaced, the one that ends last. nil: there is none.
func AuthorityOf(c *pki.Credentials) *Certificate {
	if c == nil {
		return nil
	}
	var last *Certificate
	for _, root := range c.Roots() {
		if last == nil || root.NotAfter.After(last.To) {
			last = &Certificate{From: root.NotBefore, To: root.NotAfter}
		}
	}
	return last
}

// Switch is what a host's Open vSwitch is like.
type Switch struct {
	Version  string   `json:"version"`  // of Open vSwitch; empty: it has not been recorded
	Datapath string   `json:"datapath"` // system | netdev
	Bridges  []Bridge `json:"bridges"`
	Ports    []Port   `json:"ports"` // of endpoints
	Tunnels  Tunnels  `json:"tunnels"`
	// Connections are the tracked ones of the whole host.
	Connections Connections `json:"connections"`
	// Errors are what could not be found out, one line each.
	Errors []string `json:"errors"`
}

// Bridge is one bridge of Contiv.
type Bridge struct {
	Name      string    `json:"name"`
	Connected bool      `json:"connected"` // the OpenFlow channel is up, and the flows are known
	Error     string    `json:"error,omitempty"`
	Pending   int       `json:"pending"` // changes that have not been sent
	Refused   int       `json:"refused"` // changes that the switch rejects
	Restarts  uint64    `json:"restarts"`
	Restarted time.Time `json:"restarted,omitzero"`
	Foreign   int       `json:"foreign"` // flows that nothing of this agent wants
	Missing   int       `json:"missing"` // flows that it wants and the switch does not have
	// Drops are the packets that the bridge has dropped, by reason (docs/metrics.md).
	Drops map[string]uint64 `json:"drops"`
}

// Port is the port of an endpoint.
type Port struct {
	Name      string `json:"name"`
	Endpoint  string `json:"endpoint"`
	Container string `json:"container"`
	MTU       int    `json:"mtu"`             // bytes; 0: not known
	Tunnelled bool   `json:"tunnelled"`       // what it sends to other hosts goes through tunnels
	Error     string `json:"error,omitempty"` // of the switch about its interface
	// Gone: the network namespace that it was made for does not exist any more.
	Gone bool `json:"gone"`
}

// Tunnels are the VXLAN tunnels of a host.
type Tunnels struct {
	Networks int        `json:"networks"` // VXLAN networks that the host knows
	VTEP     netip.Addr `json:"vtep"`     // the host's own tunnel address
	MTU      int        `json:"mtu"`      // bytes that fit through, by the interface of that address
	Peers    []Peer     `json:"peers"`    // the other hosts' tunnel addresses, sorted
}

// Peer is what has come from another host.
type Peer struct {
	VTEP    netip.Addr `json:"vtep"`
	Packets uint64     `json:"packets"`
	Bytes   uint64     `json:"bytes"`
}

// Connections are how full the table of tracked connections is. Limit 0: not known.
type Connections struct {
	Tracked uint64 `json:"tracked"`
	Limit   uint64 `json:"limit"`
}

// Probe asks an agent to send frames through its tunnels that belong to no network: the
// other end counts them by their sender, and drops them.
type Probe struct {
	Peers []netip.Addr `json:"peers"` // tunnel addresses, at most MaxPeers
	Size  int          `json:"size"`  // bytes behind the Ethernet header, from MinSize to the tunnels' MTU
	Count int          `json:"count"` // frames to each, 1 to MaxCount
}

// Bounds of a Probe.
const (
	MaxPeers = 64
	MaxCount = 8
	MinSize  = 60
)

// ProbeSent is the answer to a Probe.
type ProbeSent struct {
	Frames int `json:"frames"`
}
