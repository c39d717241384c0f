package doctor

import (
	"maps"
	"slices"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
)

// Facts are what checks judge.
type Facts struct {
	Now     time.Time
	Cluster clusterapi.Cluster // the hosts as the leader sees them
	// Hosts is what the agents have told, by host label; Before is the same from before the
	// probes were sent. A host that did not answer is in neither.
	Hosts, Before map[string]agents.Facts
	Away          map[string]error    // hosts whose agents did not answer
	Tunnels       map[way]Arrival     // what became of frames through tunnels
	Endpoints     map[string][]string // ids of the endpoints that should be there, by host

	Masters     []Master               // the netmasters
	StoreDelay  time.Duration          // median of a read; 0: not known
	Members     []objdb.Member         // of the store; none: it does not tell
	Disk        Disk                   // of the store's data on this host
	Certificate *doctorapi.Certificate // of this netmaster; nil: it has none
	Authority   *doctorapi.Certificate // that issues certificates; nil: there is none
}

// Disk is how full a disk is, in bytes. Total 0: not known.
type Disk struct{ Used, Total uint64 }

// labels returns the hosts that have answered, sorted.
func (f *Facts) labels() []string { return slices.Sorted(maps.Keys(f.Hosts)) }

// host names a host as the object of a finding.
func host(label string) string { return "host " + label }

// each runs a check host by host.
func each(judge func(label string, h agents.Facts) []doctorapi.Finding) func(*Facts) []doctorapi.Finding {
	return func(f *Facts) (out []doctorapi.Finding) {
		for _, label := range f.labels() {
			out = append(out, judge(label, f.Hosts[label])...)
		}
		return out
	}
}
