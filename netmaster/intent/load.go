package intent

import (
	"context"
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/objdb"
)

// loader fills a model from the store at the start of a term. It reads prefix by prefix:
// netmaster's data cannot change between the reads, because only the holder of the fence
// may write it.
//
// A record that cannot be decoded is logged and left alone; everything else works.
type loader struct {
	model *model
	store objdb.Store
	log   logrus.FieldLogger
	// newest6 is the revision of the newest IPv6 claim, per network.
	newest6 map[string]int64
	written *written // notified of every record that agents read
}

func (l *loader) load(ctx context.Context) error {
	l.newest6 = map[string]int64{}
	if err := l.read(ctx, l.model.sources); err != nil {
		return err
	}
	l.ranges()
	return nil
}

// source is one kind of record in the store and how to load it: rest is its key without the
// prefix.
type source struct {
	prefix string
	take   func(l *loader, rest string, kv objdb.KV) error
}

// read loads the sources one after the other. While one is being loaded the store reads the
// next.
func (l *loader) read(ctx context.Context, sources []source) error {
	type list struct {
		source
		kvs []objdb.KV
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists := make(chan list)
	go func() {
		defer close(lists)
		for _, set := range sources {
			kvs, _, err := l.store.List(ctx, set.prefix)
			select {
			case lists <- list{set, kvs, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for set := range lists {
		if set.err != nil {
			return fmt.Errorf("read %s: %w", set.prefix, set.err)
		}
		for _, kv := range set.kvs {
			l.written.note(kv.Key, kv.ModRevision)
			if err := set.take(l, strings.TrimPrefix(kv.Key, set.prefix), kv); err != nil {
				l.log.WithField("key", kv.Key).WithError(err).Error("cannot decode a record in the store; ignoring it")
				l.model.unreadable[kv.Key] = err.Error()
			}
		}
	}
	return context.Cause(ctx)
}

// ranges sets the limits of the tag pools from the settings.
func (l *loader) ranges() {
	g, ok := l.model.globals.base[contivmodel.GlobalName]
	if !ok {
		return
	}
	if r, err := contivmodel.ParseVLANs(g.v.Vlans); err == nil {
		l.model.pools[tags.VLAN].SetRange(r)
	}
	if r, err := contivmodel.ParseVXLANs(g.v.Vxlans); err == nil {
		l.model.pools[tags.VXLAN].SetRange(r)
	}
}
