package commands

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// watcher is a netctl that goes on listing.
type watcher struct {
	t      *testing.T
	out    *bufio.Reader
	stop   context.CancelFunc
	status chan int
}

func startWatcher(t *testing.T, url string, args ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	c := &watcher{t: t, out: bufio.NewReader(r), stop: cancel, status: make(chan int, 1)}
	go func() {
		c.status <- Run(ctx, append([]string{"netctl", "--netmaster", url}, args...), strings.NewReader(""), w, t.Output())
		_ = w.Close()
	}()
	return c
}

func (w *watcher) expect(want ...string) {
	w.t.Helper()
	for _, line := range want {
		if got, err := w.out.ReadString('\n'); got != line+"\n" {
			w.t.Fatalf("got %q, %v, want %q", got, err, line)
		}
	}
}

// end interrupts netctl, which is no failure.
func (w *watcher) end() {
	w.t.Helper()
	w.stop()
	if status := <-w.status; status != exitOK {
		w.t.Errorf("exit status %d", status)
	}
	if rest, _ := io.ReadAll(w.out); len(rest) > 0 {
		w.t.Errorf("more output: %q", rest)
	}
}

// TestListWatch follows lists in all forms, through changes of the store and a stream
// that has to begin anew.
func TestListWatch(t *testing.T) {
	store := memory.New()
	url := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	netctl := func(args ...string) {
		t.Helper()
		if status := Run(t.Context(), append([]string{"netctl", "--netmaster", url}, args...), strings.NewReader(""), io.Discard, t.Output()); status != exitOK {
			t.Fatalf("%v: exit status %d", args, status)
		}
	}
	netctl("tenant", "create", "blue")
	netctl("net", "create", "n", "-s", "10.1.1.0/24")
	netctl("net", "create", "n", "-s", "10.1.1.0/24", "-t", "blue")
	netctl("policy", "create", "p")
	netctl("policy", "rule-add", "p", "1", "-l", "tcp", "-P", "80")

	groups := startWatcher(t, url, "group", "ls", "--watch")
	groups.expect(
		"Tenant  Group  Network  IP Pool  CfgdTag  Policies  Network profile",
		"------  -----  -------  -------  -------  --------  ---------------")
	netctl("group", "create", "-t", "blue", "n", "hidden")
	netctl("group", "create", "n", "g")
	groups.expect("added    default  g      n")
	store.Resync() // what has not changed is not told again
	netctl("group", "create", "n", "g", "-p", "p")
	groups.expect("changed  default  g      n                          p")
	netctl("group", "rm", "g")
	groups.expect("removed  default  g      n                          p")
	groups.end()

	names := startWatcher(t, url, "net", "ls", "-a", "-q", "-w")
	names.expect("n", "n")
	rules := startWatcher(t, url, "policy", "rule-ls", "p", "-w")
	rules.expect(
		"Incoming Rules:",
		"Rule  Priority  From EndpointGroup  From Network  From IpAddress  To IpAddress  Protocol  Port  Action",
		"----  --------  ------------------  ------------  ---------       ------------  --------  ----  ------",
		"1     1                                                                         tcp       80    allow",
		"Outgoing Rules:",
		"Rule  Priority  To EndpointGroup  To Network  To IpAddress  Protocol  Port  Action",
		"----  --------  ----------------  ----------  ---------     --------  ----  ------")
	tenants := startWatcher(t, url, "tenant", "ls", "-j", "-w")
	object := func(name string) string {
		return `"object":{"key":"` + name + `","tenantName":"` + name + `","link-sets":{}}}`
	}
	tenants.expect(`{"event":"listed",`+object("blue"), `{"event":"listed",`+object("default"))

	netctl("group", "create", "n", "h")
	netctl("net", "create", "m", "-s", "10.2.1.0/24", "-t", "blue")
	netctl("net", "rm", "m", "-t", "blue")
	names.expect("added m", "removed m")
	names.end()

	netctl("policy", "rule-add", "p", "2", "-d", "out", "-j", "deny", "-e", "h", "-l", "tcp", "-P", "80")
	rules.expect("added    2  direction=out  priority=1  action=deny  to-group=h  protocol=tcp  port=80")
	rules.end()

	netctl("tenant", "create", "red")
	netctl("tenant", "rm", "red")
	tenants.expect(`{"event":"added",`+object("red"), `{"event":"removed",`+object("red"))
	tenants.end()
}

// TestFollow feeds notices that only a broken stream brings.
func TestFollow(t *testing.T) {
	var said []string
	tenant := func(name, network string) contivmodel.Object {
		return contivmodel.Object{Kind: "tenant", Key: name, Object: []byte(`{"key":"` + name + `","tenantName":"` + name + `","defaultNetwork":"` + network + `"}`)}
	}
	f := &follower[contivmodel.Tenant, contivmodel.TenantOper]{
		keep: func(*contivmodel.Tenant) bool { return true },
		line: func(verb string, obj *contivmodel.Tenant) error {
			said = append(said, verb+" "+obj.Key)
			return nil
		},
		known: map[string]*contivmodel.Tenant{},
	}
	for _, n := range []contivmodel.Notice{
		{Event: contivmodel.NoticeReset, Objects: []contivmodel.Object{tenant("b", ""), tenant("a", "")}},
		{Event: contivmodel.NoticeAdded, Objects: []contivmodel.Object{tenant("a", "")}},    // again
		{Event: contivmodel.NoticeRemoved, Objects: []contivmodel.Object{{Key: "unheard"}}}, // of
		{Event: contivmodel.NoticeReset, Objects: []contivmodel.Object{tenant("c", ""), tenant("a", "n")}},
	} {
		if err := f.take(n); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(said, ", "); got != "added a, added b, removed b, changed a, added c" {
		t.Error(got)
	}
	if err := f.take(contivmodel.Notice{Event: contivmodel.NoticeAdded, Objects: []contivmodel.Object{{Object: []byte("{")}}}); err == nil {
		t.Error("an object that is no JSON is no error")
	}
}
