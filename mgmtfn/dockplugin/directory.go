package dockplugin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

// directory knows where the containers of a docker network belong, by the docker
// network's id. It learns that from the calls by which networks are made, from the
// Engine's list of networks, and from the records that all Engines share. What it has
// learned stands in the store: after a restart of host or agent containers start before
// the Engine can be asked.
type directory struct {
	cfg  Config
	kick chan struct{}

	mu      sync.Mutex
	local   map[string]entry          // of this host's Engine
	shared  map[string]docknet.Record // of all Engines, by docker network id
	pools   map[netip.Prefix]state.NetworkRef
	step    uint64 // counts the calls that have changed local
	changed signal.Signal
	engine  presence

	// records and notedNoEngine, what the store holds, belong to run.
	records       *delta.Map[string, docknet.Record]
	notedNoEngine bool
}

type entry struct {
	record docknet.Record
	step   uint64 // when it was learned
}

func newDirectory(cfg Config) *directory {
	return &directory{
		cfg: cfg, kick: make(chan struct{}, 1), local: map[string]entry{}, shared: map[string]docknet.Record{},
		pools: map[netip.Prefix]state.NetworkRef{}, records: delta.NewComparable[string, docknet.Record](),
	}
}

// find returns the record of a docker network, waiting for it to become known.
func (d *directory) find(ctx context.Context, id string) (docknet.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	for {
		r, ok, changed := d.get(id)
		if ok {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return docknet.Record{}, errs.New(errs.NotFound,
				"docker network %.12s stands for no network of Contiv: expected one with the options tenant and network, with contiv-tag, or called NETWORK[/TENANT] or GROUP[/TENANT]", id)
		}
	}
}

func (d *directory) get(id string) (r docknet.Record, ok bool, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.local[id]; ok {
		return e.record, true, d.changed.Next()
	}
	r, ok = d.shared[id]
	return r, ok, d.changed.Next()
}

// sharedBy returns the record that all Engines share of a docker network.
func (d *directory) sharedBy(id string) (docknet.Record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.shared[id]
	return r, ok
}

// freed lists the records of docker networks that are gone.
func (d *directory) freed() []docknet.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []docknet.Record
	for _, r := range d.shared {
		if r.Freed {
			all = append(all, r)
		}
	}
	return all
}

// alter changes what is known and has it written.
func (d *directory) alter(change func()) {
	d.mu.Lock()
	d.step++
	change()
	d.changed.Broadcast()
	d.mu.Unlock()
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

func (d *directory) learn(id string, r docknet.Record) {
	d.alter(func() { d.local[id] = entry{r, d.step} })
}

func (d *directory) forget(id string) { d.alter(func() { delete(d.local, id) }) }

// notePool remembers for which network a subnet was asked last: a docker network that is
// made by hand says so to the IPAM driver only.
func (d *directory) notePool(pool netip.Prefix, p state.NetworkRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[pool] = p
}

// ofPools returns the network for which one of the pools was asked last.
func (d *directory) ofPools(all ...cnm.IPAMData) (state.NetworkRef, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, data := range all {
		if p, err := netip.ParsePrefix(data.Pool); err == nil {
			if ref, ok := d.pools[p.Masked()]; ok {
				return ref, true
			}
		}
	}
	return state.NetworkRef{}, false
}

// mark returns a point in time for replace.
func (d *directory) mark() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.step
}

// replace makes what is known of the Engine's networks exactly list, but for what has
// been learned since mark.
func (d *directory) replace(list map[string]docknet.Record, mark uint64) {
	d.alter(func() {
		for id, e := range d.local {
			if _, ok := list[id]; !ok && e.step <= mark {
				delete(d.local, id)
			}
		}
		for id, r := range list {
			if e, ok := d.local[id]; !ok || e.step <= mark {
				d.local[id] = entry{r, d.step}
			}
		}
	})
}

// presence is what is known of the host's Engine.
type presence int

const (
	engineUnknown presence = iota // the store is right
	engineUp
	engineDown // for long
)

func (d *directory) setEngine(p presence) {
	d.mu.Lock()
	same := d.engine == p
	d.mu.Unlock()
	if !same {
		d.alter(func() { d.engine = p })
	}
}

// run keeps the directory and the store in step until ctx ends.
func (d *directory) run(ctx context.Context) error {
	done := make(chan struct{})
	go func() { defer close(done); d.followShared(ctx) }()
	defer func() { <-done }()
	again := retry.New(500*time.Millisecond, 10*time.Second)
	loaded, said := false, false
	for {
		var err error
		if !loaded {
			err = d.load(ctx)
			loaded = err == nil
		}
		if err == nil {
			err = d.write(ctx)
		}
		var due <-chan time.Time
		if err != nil && ctx.Err() == nil {
			if !said {
				d.cfg.Log.WithError(err).Warn("cannot write docker networks to the store; retrying")
			}
			said = true
			due = time.After(again.Next())
		} else {
			said = false
			again.Reset()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.kick:
		case <-due:
		}
	}
}

func (d *directory) prefix() string { return docknet.HostRoot + d.cfg.HostLabel + "/" }

// load reads what this host's agent has learned before.
func (d *directory) load(ctx context.Context) error {
	kvs, _, err := d.cfg.Store.List(ctx, d.prefix())
	if err != nil {
		return fmt.Errorf("list the docker networks of this host: %w", err)
	}
	d.alter(func() {
		for _, kv := range kvs {
			id := strings.TrimPrefix(kv.Key, d.prefix())
			if id == docknet.NoEngine {
				d.notedNoEngine = true
				continue
			}
			var r docknet.Record
			if json.Unmarshal(kv.Value, &r) != nil || r.DocknetUUID == "" {
				continue
			}
			d.records.SetActual(id, r)
			if _, ok := d.local[id]; !ok {
				d.local[id] = entry{r, d.step}
			}
		}
	})
	return nil
}

// recordsAtOnce is how many records go with one request.
const recordsAtOnce = 64

// write brings the store to what is known.
func (d *directory) write(ctx context.Context) error {
	want := map[string]docknet.Record{}
	d.mu.Lock()
	for id, e := range d.local {
		want[id] = e.record
	}
	engine := d.engine
	d.mu.Unlock()
	if noEngine := engine == engineDown; engine != engineUnknown && noEngine != d.notedNoEngine {
		if err := d.put(ctx, masterapi.HostRecords{NoEngine: &noEngine}); err != nil {
			return fmt.Errorf("write to the store whether a Docker Engine runs: %w", err)
		}
		d.notedNoEngine = noEngine
	}
	d.records.ReplaceDesired(want)
	for part := range slices.Chunk(slices.Collect(d.records.Pending()), recordsAtOnce) {
		put := map[string]*docknet.Record{}
		for _, c := range part {
			put[c.Key] = nil
			if c.Op != delta.Remove {
				put[c.Key] = &c.Want
			}
		}
		if err := d.put(ctx, masterapi.HostRecords{DockerNetworks: put}); err != nil {
			return fmt.Errorf("write %d docker networks to the store: %w", len(part), err)
		}
		for _, c := range part {
			d.records.Applied(c)
		}
	}
	return nil
}

func (d *directory) put(ctx context.Context, r masterapi.HostRecords) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return d.cfg.Master.PutHostRecords(ctx, d.cfg.HostLabel, r)
}

// followShared follows the records of the docker networks that all Engines share.
func (d *directory) followShared(ctx context.Context) {
	records := objdb.Mirror[docknet.Record]{Prefix: docknet.Root, Changed: func(c objdb.Change[docknet.Record]) {
		if c.Was {
			delete(d.shared, c.Old.DocknetUUID)
		}
		if c.Is && c.New.DocknetUUID != "" {
			d.shared[c.New.DocknetUUID] = c.New
		}
	}}
	for batch := range d.cfg.Store.Watch(ctx, docknet.Root) {
		d.alter(func() { records.Apply(batch) })
	}
}
