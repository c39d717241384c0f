package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
)

// Watch implements objdb.Store.
func (s *Store) Watch(ctx context.Context, prefix string) <-chan objdb.Batch {
	w := &watch{s: s, prefix: prefix, out: make(chan objdb.Batch)}
	ctx, over := s.life.Bound(ctx)
	if !s.life.Go(func() {
		defer close(w.out)
		defer over()
		w.run(ctx)
	}) {
		over()
		close(w.out)
	}
	return w.out
}

// watch is one Watch: a list at revision R, then the events from R+1 on, then, when
// those cannot be had, a list again.
type watch struct {
	s      *Store
	prefix string
	out    chan objdb.Batch

	at   header // everything up to at.Revision has been delivered; 0: nothing
	mark mark
}

// mark is a put that has been delivered. As long as the store remembers it, the store
// is the one whose history we know.
type mark struct {
	key            string
	create, modify int64
}

// note remembers why the store refuses the watch, for Health.
func (w *watch) note(err error) {
	if err != nil && kind(err) != errs.Invalid {
		return // it says nothing of permissions
	}
	w.s.refusals.Note(w, w.s.wrap(err, "watch "+w.prefix))
}

func (w *watch) run(ctx context.Context) {
	defer w.note(nil)
	b := remote.NewBackoff()
	for ctx.Err() == nil {
		if w.at.Revision == 0 {
			if !w.snapshot(ctx) {
				if !b.Wait(ctx) { // a refused read (permissions) may be allowed later
					return
				}
				continue
			}
			b.Reset()
		}
		switch w.follow(ctx) {
		case historyGone:
			w.at, w.mark = header{}, mark{}
		case interrupted:
			if !b.Wait(ctx) {
				return
			}
		case progressed:
			b.Reset()
		}
	}
}

func (w *watch) snapshot(ctx context.Context) bool {
	kvs, head, err := w.s.list(ctx, w.prefix)
	w.note(err)
	if err != nil {
		return false
	}
	batch := objdb.Batch{Snapshot: true, Revision: head.Revision, Events: make([]objdb.Event, len(kvs))}
	w.mark = mark{}
	for i, kv := range kvs {
		batch.Events[i] = objdb.Event{KV: kv}
		if kv.ModRevision > w.mark.modify {
			w.mark = mark{key: kv.Key, create: kv.CreateRevision, modify: kv.ModRevision}
		}
	}
	w.at = head
	return w.send(ctx, batch)
}

func (w *watch) send(ctx context.Context, b objdb.Batch) bool {
	select {
	case w.out <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// ending says why follow returned.
type ending int

const (
	interrupted ending = iota // nothing was delivered
	progressed                // interrupted after something was delivered
	historyGone               // the changes after at cannot be had any more
)

// follow delivers changes until the stream of them ends.
func (w *watch) follow(ctx context.Context) ending {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := interrupted
	reconnected := w.s.reconnects.Next()
	// Without a leader a member would keep us waiting for changes that happen elsewhere.
	// The client puts fragments together again: a revision arrives whole.
	events := w.s.c.Watch(clientv3.WithRequireLeader(ctx), w.prefix, clientv3.WithPrefix(),
		clientv3.WithRev(w.at.Revision+1), clientv3.WithFragment(),
		clientv3.WithProgressNotify(), clientv3.WithCreatedNotify())
	for {
		select {
		case <-reconnected:
			// The client resumes by itself, but would wait for ever on a server whose
			// history has become shorter than ours.
			reconnected = w.s.reconnects.Next()
			if !w.sameHistory(ctx) {
				return historyGone
			}
		case resp, ok := <-events:
			if !ok {
				return result
			}
			if resp.CompactRevision != 0 || errors.Is(resp.Err(), rpctypes.ErrCompacted) {
				return historyGone
			}
			w.note(resp.Err())
			if resp.Err() != nil {
				return result
			}
			if resp.Header.Revision < w.at.Revision && !w.sameHistory(ctx) {
				return historyGone
			}
			if len(resp.Events) == 0 {
				if resp.IsProgressNotify() {
					w.at.Revision = max(w.at.Revision, resp.Header.Revision)
				}
				continue
			}
			if !w.deliver(ctx, resp.Events) {
				return result
			}
			result = progressed
		}
	}
}

func (w *watch) deliver(ctx context.Context, events []*clientv3.Event) bool {
	batch := objdb.Batch{Events: make([]objdb.Event, 0, len(events))}
	for _, ev := range events {
		batch.Revision = ev.Kv.ModRevision
		if ev.Type == clientv3.EventTypeDelete {
			batch.Events = append(batch.Events, objdb.Event{
				KV: objdb.KV{Key: string(ev.Kv.Key), ModRevision: ev.Kv.ModRevision}, Deleted: true,
			})
			continue
		}
		kv := toKV(ev.Kv)
		batch.Events = append(batch.Events, objdb.Event{KV: kv})
		w.mark = mark{key: kv.Key, create: kv.CreateRevision, modify: kv.ModRevision}
	}
	w.at.Revision = batch.Revision
	return w.send(ctx, batch)
}

// sameHistory asks the cluster whether it still is the one whose changes have been
// delivered. A store that was restored from a backup, or was reset, is not, even when
// it has caught up with our revision. In doubt the answer is no: another list is
// always right.
func (w *watch) sameHistory(ctx context.Context) bool {
	resp, err := w.s.read(ctx, w.prefix, clientv3.WithCountOnly())
	if err != nil || resp.Header.Revision < w.at.Revision || resp.Header.ClusterId != w.at.Cluster {
		return false
	}
	if w.mark.key == "" {
		return true
	}
	resp, err = w.s.read(ctx, w.mark.key, clientv3.WithRev(w.mark.modify))
	return err == nil && len(resp.Kvs) == 1 &&
		resp.Kvs[0].ModRevision == w.mark.modify && resp.Kvs[0].CreateRevision == w.mark.create
}
