package objdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/utils/retry"
)

// ServiceTTL is how long a registration outlives its process.
const ServiceTTL = 10 * time.Second

// Roles of a service instance; agents have none.
const (
	RoleLeader   = "leader"
	RoleFollower = "follower"
)

// ServiceInfo is one instance of a service, as the registry holds it under
// /contiv.io/service/<name>/<addr>:<port>.
type ServiceInfo struct {
	ServiceName string `json:"ServiceName"`
	Role        string `json:"Role"`
	Version     string `json:"Version"`
	TTL         int    `json:"TTL"` // seconds
	HostAddr    string `json:"HostAddr"`
	Port        int    `json:"Port"`
	Hostname    string `json:"Hostname"`
}

// Endpoint returns "addr:port".
func (i ServiceInfo) Endpoint() string { return net.JoinHostPort(i.HostAddr, strconv.Itoa(i.Port)) }

func serviceRoot(name string) string { return "/contiv.io/service/" + name + "/" }

// Key is where the registry has the instance.
func (i ServiceInfo) Key() string { return serviceRoot(i.ServiceName) + i.Endpoint() }

// Registration keeps one instance in the registry, and renews it when its lease ends.
type Registration struct {
	store  Store
	failed func(error)
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	info    ServiceInfo
	changed chan struct{} // holds a token when info is newer than the store's
	left    error         // why our entry could not be removed at the end
}

// Register adds info to the registry and keeps it there until Close, or until ctx ends. It
// does not wait for the store. TTL is set to ServiceTTL. failed, which may be nil, is called
// with the reason whenever the instance is not registered any more, before the next attempt.
func Register(ctx context.Context, store Store, info ServiceInfo, failed func(error)) *Registration {
	info.TTL = int(ServiceTTL / time.Second)
	ctx, stop := context.WithCancel(ctx)
	r := &Registration{
		store: store, failed: failed, stop: stop, done: make(chan struct{}), info: info, changed: make(chan struct{}, 1),
	}
	go r.run(ctx)
	return r
}

// SetRole changes the role.
func (r *Registration) SetRole(role string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.info.Role == role {
		return
	}
	r.info.Role = role
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Close removes the instance from the registry. ctx limits the wait for the store.
func (r *Registration) Close(ctx context.Context) error {
	r.stop()
	r.mu.Lock()
	key := r.info.Key()
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("unregister %s: %w", key, ctx.Err())
	}
	if r.left != nil {
		return fmt.Errorf("unregister %s: %w", key, r.left)
	}
	return nil
}

func (r *Registration) run(ctx context.Context) {
	defer close(r.done)
	again := retry.New(ServiceTTL/20, ServiceTTL/4)
	for ctx.Err() == nil {
		err := r.hold(ctx, again.Reset)
		if r.failed != nil && ctx.Err() == nil {
			r.failed(err)
		}
		again.Wait(ctx)
	}
}

// hold registers under one lease and returns why that ended. It calls held when it has
// registered.
func (r *Registration) hold(ctx context.Context, held func()) error {
	lease, err := r.store.Grant(ctx, ServiceTTL)
	if err != nil {
		return err
	}
	defer func() {
		// Ending the lease removes our entry, but not that of a successor that has
		// already registered under the same address.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := lease.Release(bye); err != nil && ctx.Err() != nil {
			r.left = err
		}
	}()
	for {
		r.mu.Lock()
		info := r.info
		r.mu.Unlock()
		value, err := json.Marshal(info)
		if err != nil {
			return err
		}
		if _, err := r.store.Commit(ctx, Txn{Then: []Op{PutLeased(info.Key(), value, lease.ID())}}); err != nil {
			return err
		}
		held()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lease.Done():
			return ErrLeaseEnded
		case <-r.changed:
		}
	}
}

// WatchServices delivers all instances of a service, sorted by endpoint, first the existing
// ones, possibly none, and then whenever they change. A slow consumer gets the newest
// state, not every one in between. Unreadable entries are skipped. The channel is closed
// when ctx ends.
func WatchServices(ctx context.Context, store Store, name string) <-chan []ServiceInfo {
	out := make(chan []ServiceInfo)
	go func() {
		defer close(out)
		root := serviceRoot(name)
		batches := store.Watch(ctx, root)
		known := map[string]ServiceInfo{}
		var (
			send chan<- []ServiceInfo // nil while the consumer has the newest state
			list []ServiceInfo
		)
		for {
			select {
			case b, ok := <-batches:
				if !ok {
					return
				}
				applyServices(known, root, b)
				keys := slices.Sorted(maps.Keys(known))
				list = make([]ServiceInfo, len(keys))
				for i, k := range keys {
					list[i] = known[k]
				}
				send = out
			case send <- list:
				send = nil
			}
		}
	}()
	return out
}

func applyServices(known map[string]ServiceInfo, root string, b Batch) {
	if b.Snapshot {
		clear(known)
	}
	for _, ev := range b.Events {
		key := strings.TrimPrefix(ev.KV.Key, root)
		var info ServiceInfo
		if ev.Deleted || json.Unmarshal(ev.KV.Value, &info) != nil || info.HostAddr == "" {
			delete(known, key)
			continue
		}
		known[key] = info
	}
}
