package ovsd

import (
	"slices"

	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/ofnet"
)

// removals are the owners that lose their programs in a pass, in the order in which they
// were computed. They are removed in reverse order, as references to something are computed
// after it.
type removals struct {
	order []removal // also those that have been canceled
	todo  map[ownerOf]struct{}
}

type removal struct {
	ownerOf
	kind compiler.Kind
}

// ownerOf is an owner of flows in a bridge.
type ownerOf struct {
	sw    programmed
	owner string
}

// programmed is a switch, as far as removals need it.
type programmed interface{ Remove(owner string) }

var _ programmed = (*ofnet.Switch)(nil)

func newRemovals() removals { return removals{todo: map[ownerOf]struct{}{}} }

func (r *removals) add(sw programmed, kind compiler.Kind, owner string) {
	o := ownerOf{sw, owner}
	if _, known := r.todo[o]; !known {
		r.todo[o] = struct{}{}
		r.order = append(r.order, removal{o, kind})
	}
}

// cancel keeps an owner that has got a program again.
func (r *removals) cancel(sw programmed, owner string) { delete(r.todo, ownerOf{sw, owner}) }

// carryOut removes the owners of those kinds for which which returns true.
func (r *removals) carryOut(which func(compiler.Kind) bool) {
	for _, x := range slices.Backward(r.order) {
		if _, due := r.todo[x.ownerOf]; due && which(x.kind) {
			x.sw.Remove(x.owner)
			delete(r.todo, x.ownerOf)
		}
	}
}

// ofPolicies reports whether flows of a kind decide which connections are allowed.
func ofPolicies(k compiler.Kind) bool {
	return k == compiler.RuleFlows || k == compiler.RuleSetFlows || k == compiler.PolicyPeerFlows || k == compiler.PolicyFlows
}
