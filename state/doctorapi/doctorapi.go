// Package doctorapi holds what netctl, netmaster and agents tell each other when somebody
// wants to know what is wrong with a cluster. netctl asks netmaster (Report); netmaster asks
// the agent of every host for facts (Host), and judges them. Agents judge nothing, so that one
// place knows what is wrong, and can compare hosts.
package doctorapi

import "time"

// Paths.
const (
	PathMaster = "/api/v1/doctor/" // GET Report, from netmaster
	PathAgent  = "/doctor"         // GET Host, from an agent
	PathProbe  = "/doctor/probe"   // POST Probe, to an agent: it sends, and answers with ProbeSent
)

// QueryHost names a host that is asked; it may be repeated. Without it, all are.
const QueryHost = "host"

// MaxProbe bounds the body of a Probe, in bytes.
const MaxProbe = 64 << 10

// Severity says how much a finding weighs.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will not work, or not well
	Note    Severity = "note"    // something to know; nothing needs to be done
)

// Finding is one thing that is wrong.
type Finding struct {
	Code     string   `json:"code"` // what kind of thing, for scripts: never changes
	Severity Severity `json:"severity"`
	Object   string   `json:"object"` // what it is about: "host host1", "store", "endpoint …"
	Text     string   `json:"text"`   // what is wrong, one sentence
	Do       string   `json:"do"`     // what to do about it, one sentence
}

// Report is the answer to PathMaster.
type Report struct {
	Made     time.Time `json:"made"`
	Findings []Finding `json:"findings"` // those of most weight first
	Checks   []string  `json:"checks"`   // names of the checks that were made
	Asked    []string  `json:"asked"`    // hosts whose agents answered, sorted
	Away     []Away    `json:"away"`     // hosts whose agents did not, sorted
}

// Away is a host whose agent could not be asked. What only it knows was not checked.
type Away struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}
