package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

// snapshotStore is a store whose watch of the state delivers one snapshot and keeps nothing of it, so
// that what stays in memory is the agent's.
type snapshotStore struct {
	objdb.Store
	snapshot func() objdb.Batch
}

// Watch implements objdb.Store.
func (s snapshotStore) Watch(ctx context.Context, prefix string) <-chan objdb.Batch {
	if prefix != state.StateRoot {
		return s.Store.Watch(ctx, prefix)
	}
	out := make(chan objdb.Batch)
	go func() {
		defer close(out)
		select {
		case out <- s.snapshot():
		case <-ctx.Done():
		}
		<-ctx.Done()
	}()
	return out
}

// snapshotRevision is that of the only batch.
const snapshotRevision = 1000

// records are those that netmaster makes of the objects of a size.
func (s size) records(tb testing.TB) objdb.Batch {
	b := objdb.Batch{Snapshot: true, Revision: snapshotRevision}
	put := func(key string, record any) {
		value, err := json.Marshal(record)
		if err != nil {
			tb.Fatal(err)
		}
		b.Events = append(b.Events, objdb.Event{KV: objdb.KV{Key: key, Value: value, CreateRevision: 1, ModRevision: snapshotRevision}})
	}
	for i := range s.Hosts {
		a := hostAddress(i + 1).String()
		put(state.HostRoot+hostName(i+1), state.Host{ID: hostName(i + 1), VtepIP: a, CtrlIP: a})
	}
	networks, groups, rules := s.Networks/s.Tenants, s.Groups/s.Tenants, s.Rules/s.Groups
	for i := range networks * s.Tenants {
		rec := state.Network{
			Tenant: tenantName(i / networks), NetworkName: numbered("net", i%networks), PktTagType: state.EncapVXLAN, PktTag: 1 + i%4000, ExtPktTag: 10001 + i,
			SubnetIP: fmt.Sprintf("10.%d.0.0", i%networks), SubnetLen: 16, Gateway: fmt.Sprintf("10.%d.255.254", i%networks), IPAddrRange: fmt.Sprintf("10.%d.0.1-10.%d.255.254", i%networks, i%networks),
		}
		rec.ID, rec.NwType = state.NetworkID(rec.NetworkName, rec.Tenant), state.NetworkData
		put(state.NetworkRoot+rec.ID, rec)
	}
	for i := range groups * s.Tenants {
		rec := state.EndpointGroup{GroupName: numbered("group", i%groups), TenantName: tenantName(i / groups), NetworkName: numbered("net", i%groups%networks), EndpointGroupID: i + 1, PktTagType: state.EncapVXLAN}
		rec.ID = state.GroupID(rec.GroupName, rec.TenantName)
		put(state.GroupRoot+rec.ID, rec)
		for j := range rules {
			tenant := rec.TenantName
			for _, direction := range []string{"inRx", "inTx"} {
				id := fmt.Sprintf("%s:%s:%s:policy%d:%s:policy%d:%d:%s", tenant, rec.GroupName, tenant, i%groups, tenant, i%groups, j, direction)
				put(state.PolicyRuleRoot+id, state.PolicyRule{RuleID: id, Priority: 10, SrcEndpointGroup: 1 + i/groups*groups + (i+1)%groups, DstEndpointGroup: i + 1, IPProtocol: 6, DstPort: 1000 + j, Action: "allow"})
			}
		}
	}
	for i := range s.Endpoints {
		put(s.endpointRecord(i))
	}
	for i := range s.Services {
		tenant, name := tenantName(i%s.Tenants), numbered("service", i/s.Tenants)
		provider := "10.0.0.1"
		id := state.ServiceID(name, tenant)
		put(state.ServiceLBRoot+id, state.ServiceLB{
			ID: id, ServiceName: name, Tenant: tenant, Network: "net0", Ports: []string{"80:8080:TCP"}, Selectors: map[string]string{"app": "web0"}, IPAddress: "10.0.255.1",
			Providers: map[string]state.Provider{provider + ":" + tenant: {IPAddress: provider, Tenant: tenant, Network: "net0", EpIDKey: "net0." + tenant + "-c0"}},
		})
		put(state.ProviderRoot+id, state.ProviderList{ID: id, ServiceName: id, Providers: []string{provider}})
	}
	slices.SortFunc(b.Events, func(x, y objdb.Event) int { return strings.Compare(x.KV.Key, y.KV.Key) })
	return b
}

// endpointRecord is the record that netmaster makes of the request for endpoint i.
func (s size) endpointRecord(i int) (key string, record any) {
	req, nth := s.endpoint(i), i/s.Tenants
	a := netip.AddrFrom4([4]byte{10, byte(nth % (s.Groups / s.Tenants) % (s.Networks / s.Tenants)), byte(nth >> 8), byte(nth)})
	b := a.As4()
	rec := state.Endpoint{
		NetID: state.NetworkID(req.NetworkName, req.TenantName), EndpointID: req.EndpointID, ServiceName: req.ServiceName,
		EndpointGroupID: 1 + (i%s.Tenants)*(s.Groups/s.Tenants) + nth%(s.Groups/s.Tenants), EndpointGroupKey: state.GroupID(req.ServiceName, req.TenantName),
		IPAddress: a.String(), MacAddress: fmt.Sprintf("02:02:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3]), HomingHost: req.ConfigEP.Host, ContainerID: req.EndpointID,
	}
	rec.ID = state.EndpointID(rec.NetID, rec.EndpointID)
	return state.EndpointRoot + rec.ID, rec
}

// BenchmarkOneAgent is the start of one agent, from the records it has received to the flows it has sent,
// and what it keeps. In the directory CONTIV_PROFILE, profiles of that are written.
func BenchmarkOneAgent(b *testing.B) {
	for _, endpoints := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(endpoints), func(b *testing.B) {
			s := size{Hosts: 1000, Endpoints: endpoints, Tenants: 1000, Networks: 5000, Groups: 5000, Rules: 30000, Services: 1000}
			for range b.N {
				b.StopTimer()
				startOnce(b, s)
				b.StartTimer()
			}
		})
	}
}

// startOnce runs one agent until it has sent all flows, with b's timer running only then.
func startOnce(b *testing.B, s size) {
	store := memory.New()
	defer store.Close()
	settings := objdb.Put(state.GlobalKey, []byte(`{"id":"global","fwd-mode":"routing","arp-mode":"proxy","pvt-subnet":"172.19.0.0/16"}`))
	if _, err := store.Commit(b.Context(), objdb.Txn{Then: []objdb.Op{settings}}); err != nil {
		b.Fatal(err)
	}
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	before := heap()
	snapshot := s.records(b)
	give := func() (once objdb.Batch) {
		once, snapshot = snapshot, objdb.Batch{}
		return once
	}
	f := newFull(hostName(1), hostAddress(1), snapshotStore{store, give}, cluster.NewMaster(nil), log)
	ctx, cancel := context.WithCancel(b.Context())
	g, ctx := errgroup.WithContext(ctx)
	defer func() { cancel(); _ = g.Wait() }()
	stopProfile := profile(b)
	used := processorTime(b)
	b.StartTimer()
	g.Go(func() error { return f.run(ctx) })
	if err := f.sent.await(ctx, snapshotRevision); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric((processorTime(b) - used).Seconds(), "cpu-s")
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	b.ReportMetric(float64(f.bridges.Summary().Flows), "flows")
	stopProfile()
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// profile begins profiles, if they are wanted; the function it returns writes them.
func profile(b *testing.B) (stop func()) {
	dir := os.Getenv("CONTIV_PROFILE")
	if dir == "" {
		return func() {}
	}
	create := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	cpu := create("cpu.prof")
	if err := pprof.StartCPUProfile(cpu); err != nil {
		b.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		used := create("heap.prof")
		if err := errors.Join(cpu.Close(), pprof.WriteHeapProfile(used), used.Close()); err != nil {
			b.Error(err)
		}
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
