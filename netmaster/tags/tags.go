// Package tags knows which VLANs, VNIs and group ids are free. A Pool is an index over the
// tag claims of one kind, each of which is a key in the store; every new leader rebuilds it
// from the claims. The bit sets of free tags of earlier releases (auto-vlan, auto-vxlan) no
// longer exist: the claims are what is in use, and the ranges are in the global settings.
package tags

import (
	"fmt"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/sparse"
)

// The pools; the names are path segments of claim keys.
const (
	VLAN    = "vlan"       // VLANs of vlan networks and of groups in ACI mode
	VXLAN   = "vxlan"      // VNIs
	Local   = "local-vlan" // VLANs that stand for a VNI inside the hosts
	GroupID = "group-id"   // numbers of endpoint groups
)

// Limits that do not come from the global settings.
const (
	// NameServerVLAN is used for the agents' name server and never as a local VLAN.
	NameServerVLAN = 4093
	// MaxGroupID is the largest number the 15 metadata bits of a group hold; 0 = none.
	MaxGroupID = 32767
	maxTag     = 65535
)

// LocalRange and GroupRange are the fixed ranges.
func LocalRange() contivmodel.TagRange { return contivmodel.TagRange{Low: 1, High: 4094} }

// GroupRange is the range of group ids.
func GroupRange() contivmodel.TagRange { return contivmodel.TagRange{Low: 1, High: MaxGroupID} }

// Pool is the index of one sort of tag. Not safe for concurrent use.
type Pool struct {
	limits   contivmodel.TagRange
	used     *sparse.Set
	withheld int // a tag of the range that is never handed out; 0 = none
}

// NewPool returns a pool in which everything within limits is free, except the withheld tag
// (0 = none).
func NewPool(limits contivmodel.TagRange, withheld int) *Pool {
	return &Pool{limits: limits, used: sparse.New(maxTag + 1), withheld: withheld}
}

// Range returns the limits; the zero TagRange means that nothing can be handed out.
func (p *Pool) Range() contivmodel.TagRange { return p.limits }

// SetRange changes the limits. Tags that are taken stay so.
func (p *Pool) SetRange(limits contivmodel.TagRange) { p.limits = limits }

// Available reports whether tag may be handed out.
func (p *Pool) Available(tag int) bool {
	return tag > 0 && p.limits.Contains(tag) && tag != p.withheld && !p.used.Has(uint64(tag))
}

// Len returns how many tags are claimed.
func (p *Pool) Len() int { return p.used.Len() }

// Take claims tag and reports whether it was free; it ignores the limits, see Available.
func (p *Pool) Take(tag int) bool { return tag > 0 && p.used.Add(uint64(tag)) }

// Free frees tag and reports whether it was claimed.
func (p *Pool) Free(tag int) bool { return tag > 0 && p.used.Remove(uint64(tag)) }

// Next returns the lowest free tag, false if there is none. It does not claim it.
func (p *Pool) Next() (int, bool) {
	if p.limits.High <= 0 {
		return 0, false
	}
	for at := uint64(max(1, p.limits.Low)); ; at++ {
		n, ok := p.used.NextFree(at)
		if at = n; !ok || !p.limits.Contains(int(n)) {
			return 0, false
		}
		if int(n) != p.withheld {
			return int(n), true
		}
	}
}

// Text formats ascending tags: runs as a-b, joined by ", ".
func Text(tags []int) string {
	var words []string
	for i := 0; i < len(tags); {
		j := i
		for j+1 < len(tags) && tags[j+1] == tags[j]+1 {
			j++
		}
		if i == j {
			words = append(words, fmt.Sprint(tags[i]))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", tags[i], tags[j]))
		}
		i = j + 1
	}
	return strings.Join(words, ", ")
}
