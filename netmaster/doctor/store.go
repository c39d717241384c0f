package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/doctorapi"
)

// A store that takes slow to answer a read delays changes; one that takes stalled endangers
// the leader's lease.
const (
	slow    = 200 * time.Millisecond
	stalled = time.Second
)

// readings is how often the store is asked: the median counts, so that one pause does not.
const readings = 5

// measureStore returns the median time of a read through most members of the store.
func measureStore(ctx context.Context, read func(context.Context) error) time.Duration {
	if read == nil {
		return 0
	}
	var took []time.Duration
	for range readings {
		began := time.Now()
		if read(ctx) != nil && ctx.Err() != nil {
			break
		}
		took = append(took, time.Since(began))
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// stores finds a slow store, and members that are lost.
var stores = check{"store", func(f *Facts) (out []doctorapi.Finding) {
	if f.StoreDelay >= slow {
		severity := doctorapi.Warning
		if f.StoreDelay >= stalled {
			severity = doctorapi.Error
		}
		out = append(out, doctorapi.Finding{
			Code: "store-slow", Severity: severity, Object: "store", Text: fmt.Sprintf("a read takes %v", f.StoreDelay.Round(time.Millisecond)),
			Do: "see the disks and the load of the hosts of the store's members, and the network between them",
		})
	}
	for _, m := range f.Members {
		if m.Err == "" {
			continue
		}
		out = append(out, doctorapi.Finding{
			Code: "store-member-lost", Severity: doctorapi.Error, Object: "store member " + m.Name, Text: fmt.Sprintf("it does not answer: %s; the store has %d members and needs %d", m.Err, len(f.Members), len(f.Members)/2+1),
			Do: "start it (netmaster, or etcd) on its host",
		})
	}
	return out
}}

// membersOf asks a store that has members for them.
func membersOf(ctx context.Context, store objdb.Store) []objdb.Member {
	m, ok := store.(objdb.Membership)
	if !ok {
		return nil
	}
	members, err := m.Members(ctx)
	if err != nil {
		return nil // that the store does not answer is seen by its delay, and by the agents
	}
	return members
}
