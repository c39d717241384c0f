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
		out = append(out, judgeMember(m, len(f.Members))...)
	}
	return out
}}

// lagging is how many entries of the log a member may be behind the one that has applied most.
const lagging = 5000

// judgeMember finds what is wrong with one of so many members.
func judgeMember(m objdb.Member, members int) (out []doctorapi.Finding) {
	find := func(code string, s doctorapi.Severity, do, format string, args ...any) {
		out = append(out, doctorapi.Finding{Code: code, Severity: s, Object: "store member " + m.Name, Text: fmt.Sprintf(format, args...), Do: do})
	}
	if m.Err != "" {
		find("store-member-lost", doctorapi.Error, "start it (netmaster, or the store's server) on its host",
			"it does not answer: %s; the store has %d members and needs %d", m.Err, members, members/2+1)
	}
	if m.Behind > lagging {
		find("store-member-behind", doctorapi.Warning, "see the disk and the load of its host; until it has caught up, the store does not survive the loss of as many others",
			"it has not applied %d entries of the log", m.Behind)
	}
	for _, alarm := range m.Alarms {
		switch alarm {
		case "NOSPACE":
			find("store-no-space", doctorapi.Error, "compact and defragment it with etcdctl, or raise its --quota-backend-bytes, then etcdctl alarm disarm",
				"its database is as large as it may be, so that nothing can be changed in the cluster")
		case "CORRUPT":
			find("store-corrupt", doctorapi.Error, "stop it, and replace it by a new member, or restore a snapshot",
				"its data differs from the other members'")
		default:
			find("store-alarm", doctorapi.Error, "see the documentation of etcd", "it has the alarm %s", alarm)
		}
	}
	return out
}

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
