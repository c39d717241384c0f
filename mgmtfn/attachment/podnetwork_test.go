package attachment

import (
	"context"
	"testing"

	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// guessing are PodNetworks that know what is likely and what is so.
type guessing struct {
	likely, is string
	err        error
}

func (g guessing) Network(context.Context, Pod) (state.NetworkRef, error) {
	return state.NetworkRef{Network: g.is}, g.err
}

func (g guessing) Likely(Pod) (state.NetworkRef, bool) {
	return state.NetworkRef{Network: g.likely}, g.likely != ""
}

// TestLikelyNetwork: whatever is likely, a container ends in the network that the API server
// says, or in none.
func TestLikelyNetwork(t *testing.T) {
	for _, c := range []struct {
		name   string
		guess  guessing
		counts string
		fails  bool
	}{
		{"right", guessing{likely: "net1", is: "net1"}, "1 endpoints, 1 ports", false},
		{"nothing is known", guessing{is: "net1"}, "1 endpoints, 1 ports", false},
		{"a network that does not exist", guessing{likely: "net9", is: "net1"}, "1 endpoints, 1 ports", false},
		{"another network", guessing{likely: "net1", is: "net9"}, "0 endpoints, 0 ports", true},
		{"no answer", guessing{likely: "net1", err: errs.New(errs.Unavailable, "no answer")}, "0 endpoints, 0 ports", true},
		{"no such pod", guessing{likely: "net1", err: errs.New(errs.NotFound, "no pod")}, "0 endpoints, 0 ports", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := attachmenttest.New(t)
			a := newAttacher(w)
			a.cfg.PodNetworks = c.guess
			req := container("c1", netxtest.Namespace(t))
			req.Network, req.Pod = state.NetworkRef{}, Pod{Namespace: "shop", Name: "web-0"}
			_, err := a.Add(t.Context(), req)
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if w.Counts() != c.counts {
				t.Errorf("there are %s, expected %s", w.Counts(), c.counts)
			}
			if err != nil {
				return
			}
			// What is attached is not risked for a guess.
			a.cfg.PodNetworks = guessing{likely: "net9", is: "net1"}
			if _, err := a.Add(t.Context(), req); err != nil || w.Counts() != c.counts {
				t.Errorf("again: %v, %s", err, w.Counts())
			}
		})
	}
}
