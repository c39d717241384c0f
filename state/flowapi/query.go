package flowapi

import (
	"net/netip"
	"time"
)

// Paths. Those of agents are on their REST port, for netmasters.
const (
	PathMaster     = "/api/v1/flows/"      // GET a stream of Events; a Filter in the query string
	PathHits       = "/api/v1/flows/hits/" // GET HitsAnswer; tenant in the query string
	PathExplain    = "/api/v1/explain/"    // GET Explanation; a Question in the query string
	PathPreview    = "/api/v1/preview/"    // POST PreviewRequest: Preview
	PathAgent      = "/flows"              // GET a stream of Events; a Filter in the query string
	PathAgentHits  = "/flows/hits"         // GET []Hits; HeaderSince tells since when
	PathAgentTests = "/flows/preview"      // POST PolicyPreviewRequest: Preview
	PathAgentAsk   = "/flows/explain"      // POST PolicyQuestion: []Decision
	PathAgentOf    = "/flows/service"      // POST ServiceQuestion: ServiceAnswer
)

// HeaderSince tells when an agent began to count hits (RFC 3339).
const HeaderSince = "Contiv-Since"

// Filter selects records. What is empty selects all.
type Filter struct {
	Tenants []string // any of these; netmaster takes away what the user may not see
	// From and To are (part of) a container's or pod's name, an endpoint's id, a group, an
	// address or a prefix. From-To is either direction if Either is set.
	From, To string
	Either   bool
	Verdict  string // allowed | denied (which rejected ones are, too)
	Rule     string // (part of) the policy's name or policy/rule
	Proto    string
	Port     uint16 // of the receiver
	Host     string
	Since    time.Time // the connection ended later, or is open
	Until    time.Time
	After    string // a record's ID, from an agent: only later ones
	Audited  bool   // what goes to the hosts' audit files
	Follow   bool   // go on with what comes
	Limit    int    // the newest; 0: all
}

// Hits are how often a rule decided about a connection.
type Hits struct {
	Tenant  string    `json:"tenant"`
	By      string    `json:"by"`
	Policy  string    `json:"policy,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Verdict Verdict   `json:"verdict"`
	Count   uint64    `json:"count"`
	First   time.Time `json:"first,omitzero"`
	Last    time.Time `json:"last,omitzero"`
	// Minutes is the count of each of the last 60 minutes, the newest last.
	Minutes []uint32 `json:"minutes,omitempty"`
	// Audit: the rule is in audit mode, and would have decided.
	Audit bool `json:"audit,omitempty"`
}

// HitsAnswer is PathHits' answer. Rules that never decided have a Count of 0.
type HitsAnswer struct {
	Since   time.Time `json:"since"` // the host that has counted for the shortest time began then
	Hits    []Hits    `json:"hits"`
	Missing []Missing `json:"missing,omitempty"`
}

// Question asks whether one end may open a connection to another. The fields are those of a
// trace (see traceapi.Query).
type Question struct {
	From, To, Tenant, Proto string
	Port                    uint16
	Family                  int
}

// Explanation is what the model says of a connection: no packet is sent and no switch asked.
type Explanation struct {
	Src       End        `json:"src"`
	Dst       End        `json:"dst"`
	Proto     string     `json:"proto"`
	Service   *Service   `json:"service,omitempty"`
	Verdict   Verdict    `json:"verdict"`
	Decisions []Decision `json:"decisions"`
	// Applied tells whether the hosts of both ends have what Decisions refer to in their
	// switches.
	Applied []Applied `json:"applied"`
	// Providers is what the model says of each provider of a service that has several, up to
	// MostProviders. The rest of the explanation is that of the first one that is not allowed,
	// or of the first.
	Providers []Explanation `json:"providers,omitempty"`
	Text      string        `json:"text"` // all of it in one sentence
}

// MostProviders bounds the providers that are explained.
const MostProviders = 32

// Applied says how far a host is.
type Applied struct {
	Host  string `json:"host"`
	At    string `json:"at"` // source | destination | both
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"`
}

// PolicyQuestion asks an agent what NetworkPolicies say of a connection of an endpoint of its
// host.
type PolicyQuestion struct {
	Endpoint string     `json:"endpoint"`
	Opens    bool       `json:"opens"` // the endpoint opens it; otherwise it is asked
	Peer     netip.Addr `json:"peer"`
	Tenant   string     `json:"tenant,omitempty"` // of the peer, if it is an endpoint
	Proto    string     `json:"proto"`
	Port     uint16     `json:"port,omitempty"`
}

// ServiceQuestion asks an agent which Service of Kubernetes is meant, and who answers for it.
type ServiceQuestion struct {
	Name    string     `json:"name,omitempty"`   // namespace/name; or
	Address netip.Addr `json:"address,omitzero"` // one of its own
	Tenant  string     `json:"tenant,omitempty"` // of the client
	Proto   string     `json:"proto,omitempty"`
	Port    uint16     `json:"port,omitempty"`
}

// ServiceAnswer is a Service; without a name there is none.
type ServiceAnswer struct {
	Name      string       `json:"name,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Providers are where a new connection of the client to the port may lead.
	Providers []netip.AddrPort `json:"providers,omitempty"`
}
