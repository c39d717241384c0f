package servertest

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/utils/errs"
)

// Patience is how long a test waits for what must happen before it fails.
const Patience = 60 * time.Second

// Root is the prefix that a Follower watches.
const Root = "/test/"

// Server is the server of a store. Its data outlives it.
type Server interface {
	Start(t testing.TB) // does not wait
	Stop(t testing.TB, sig syscall.Signal)
	URL() string
	Wipe(t testing.TB) // removes the data; it must not run
	// Move has the server, which must not run, use another port, and returns what moves
	// it back.
	Move(t testing.TB) (back func())
}

// Backend is a kind of store.
type Backend struct {
	Server   func(t testing.TB) Server
	Connect  func(t testing.TB, url string) objdb.Store // closed with the test
	Parallel bool                                       // whether servers may share the machine
}

// Follower is a store on a server, and a replica of one of its watches.
type Follower struct {
	Ctx     context.Context // ends after Patience
	Store   objdb.Store
	Replica contract.Replica
	watch   <-chan objdb.Batch
}

// Follow starts a server, connects to it and watches Root.
func (b Backend) Follow(t testing.TB, s Server) *Follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	s.Start(t)
	f := &Follower{Ctx: ctx, Store: b.Connect(t, s.URL())}
	f.watch = f.Store.Watch(ctx, Root)
	return f
}

// Put writes a key below Root. It repeats what was sent into a connection that broke:
// here that is safe.
func (f *Follower) Put(t testing.TB, name, value string) {
	t.Helper()
	for {
		_, err := f.Store.Commit(f.Ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(Root+name, []byte(value))}})
		if errs.Is(err, errs.Unavailable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// Until applies what the watch delivers until a key below Root has a value.
func (f *Follower) Until(t testing.TB, name, value string) {
	t.Helper()
	for f.Content()[name] != value {
		select {
		case b := <-f.watch:
			if err := f.Replica.Apply(b); err != nil {
				t.Fatal(err)
			}
		case <-f.Ctx.Done():
			t.Fatalf("%s did not become %s: %v", name, value, f.Content())
		}
	}
}

// Content is what the replica has below Root, by name.
func (f *Follower) Content() map[string]string { return f.Replica.Content(Root) }
