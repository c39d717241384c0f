package nodeproxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/netx"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

var testConfig = Config{Inside: []string{"contivh0", "contivhv0"}, Subnets: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}

// inNode runs f as on a node of its own, with nftables.
func inNode(t testing.TB, f func()) {
	t.Helper()
	if err := ns.WithNetNSPath(netxtest.Namespace(t), func(ns.NetNS) error { f(); return nil }); err != nil {
		t.Fatal(err)
	}
}

func open4test(t testing.TB) *kernel {
	t.Helper()
	nft, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return newKernel(nft, testConfig)
}

func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

func (k *kernel) become(t testing.TB, services ...Service) {
	t.Helper()
	all := newProgram()
	for _, s := range services {
		all.add(compile(s))
	}
	k.want(all)
	if err := k.apply(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// From any Services to any others; who reads the table finds what was written.
func TestTableFollowsServices(t *testing.T) {
	inNode(t, func() {
		k := open4test(t)
		for _, step := range [][]string{
			{"cluster"}, {"cluster", "affinity"}, {"local"}, {"sources"}, {"nobody"}, {"affinity"}, {}, {"cluster", "local", "sources", "nobody", "affinity"}, {"affinity"}, {},
		} {
			var services []Service
			for _, name := range step {
				services = append(services, examples[name])
			}
			k.become(t, services...)
			again := open4test(t)
			again.want(k.program)
			if err := again.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := again.pending(); n != 0 {
				for c := range again.points.Pending() {
					t.Log(c)
				}
				for c := range again.chains.Pending() {
					t.Log(c)
				}
				t.Fatalf("%v: a restarted agent would change %d things of\n%s", step, n, run(t, "nft", "list", "table", "inet", Table))
			}
			if !again.intact(t.Context()) {
				t.Errorf("%v: what is right looks as if somebody had changed it", step)
			}
		}
	})
}

// Names of Services are only comments, whatever they are and however long.
func TestNamesOfServicesWriteNoRules(t *testing.T) {
	long := examples["affinity"]
	long.ID = strings.Repeat("n", 63) + "/" + strings.Repeat("s", 63)
	evil := examples["cluster"]
	evil.ID = "x\" : drop }\nadd table inet owned\nadd element inet contiv-services services4 { \\"
	inNode(t, func() {
		k := open4test(t)
		k.become(t, long, evil)
		again := open4test(t)
		again.want(k.program)
		if err := again.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := again.pending(); n != 0 {
			t.Errorf("a restarted agent would change %d things", n)
		}
		if out := run(t, "nft", "list", "tables"); strings.TrimSpace(out) != "table inet "+Table {
			t.Errorf("tables:\n%s", out)
		}
	})
}

// What remembers clients stays while other things change, and over a restart.
func TestMemoryStays(t *testing.T) {
	inNode(t, func() {
		k := open4test(t)
		k.become(t, examples["affinity"])
		var set string
		for name := range k.program.sets {
			set = name
		}
		run(t, "nft", "add", "element", "inet", Table, set, "{ 198.51.100.7 }")
		k.become(t, examples["affinity"], examples["sources"])
		after := open4test(t)
		after.want(k.program)
		if err := after.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		after.become(t, examples["affinity"])
		if out := run(t, "nft", "list", "set", "inet", Table, set); !strings.Contains(out, "198.51.100.7") {
			t.Errorf("the client is forgotten: %s", out)
		}
	})
}

func TestProxySetsRight(t *testing.T) {
	inNode(t, func() {
		log := logrus.New()
		log.SetLevel(logrus.PanicLevel)
		n := &node{health: newHealth(log), cfg: testConfig, log: log}
		defer n.health.close()
		wanted := func(names ...string) declared {
			p := New(Config{Log: log})
			for i, name := range names {
				s := examples[name]
				s.ID = fmt.Sprint("shop/", i)
				p.Set(s)
			}
			p.Release()
			all, _ := p.wanted()
			return all
		}
		all := wanted("cluster")
		realise := func(what string) {
			t.Helper()
			if err := n.realise(t.Context(), all); err != nil {
				t.Fatal(what, err)
			}
			if out := run(t, "nft", "list", "table", "inet", Table); !strings.Contains(out, "10.96.0.10 . tcp . 80") {
				t.Fatalf("%s: %s", what, out)
			}
		}
		realise("at first")
		run(t, "nft", "flush", "ruleset")
		n.suspicious = true
		realise("after somebody has flushed everything")
		run(t, "nft", "delete", "table", "inet", Table)
		run(t, "nft", "add", "table", "inet", Table)
		run(t, "nft", "add", "chain", "inet", Table, "edition-0")
		n.suspicious = true
		realise("after another edition")
		// A Service that comes when the table is not what is believed: the second try holds.
		run(t, "nft", "flush", "ruleset")
		all = wanted("cluster", "sources")
		if err := n.realise(t.Context(), all); err == nil {
			t.Error("writing to a table that is not there succeeds")
		}
		realise("after a failure")

		if found, err := Remove(t.Context(), true); err != nil || !found {
			t.Errorf("the table is found: %v, %v", found, err)
		}
		if found, err := Remove(t.Context(), false); err != nil || !found {
			t.Errorf("the table is removed: %v, %v", found, err)
		}
		if found, err := Remove(t.Context(), false); err != nil || found {
			t.Errorf("the table is gone, found: %v, %v", found, err)
		}
	})
}

// Nothing is touched before everything has been declared.
func TestProxyWaits(t *testing.T) {
	p := New(Config{})
	p.Set(examples["cluster"])
	if _, ok := p.wanted(); ok || p.Ready() == nil {
		t.Errorf("ready: %v, %v", ok, p.Ready())
	}
	p.Release()
	all, ok := p.wanted()
	if !ok || len(all.services) != 1 || all.program.String() != compile(examples["cluster"]).String() {
		t.Errorf("wanted: %v, %v\n%s", ok, all.services, all.program)
	}
	p.Remove("shop/web")
	if all, _ := p.wanted(); len(all.services)+len(all.program.chains)+len(all.program.elements) != 0 {
		t.Errorf("left over: %v\n%s", all.services, all.program)
	}
}

func TestRemoveFormer(t *testing.T) {
	inNode(t, func() {
		if found, err := RemoveFormer(t.Context(), false); err != nil || found {
			t.Fatalf("without the chain: %v, %v", found, err)
		}
		for _, args := range []string{
			"-N CONTIV-NODEPORT", "-I PREROUTING -m addrtype --dst-type LOCAL -j CONTIV-NODEPORT",
			"-A CONTIV-NODEPORT -p tcp -m tcp --dport 30080 -j DNAT --to-destination 172.19.0.1:80", "-N OTHER", "-A PREROUTING -j OTHER",
		} {
			run(t, append([]string{"iptables", "-w", "5", "-t", "nat"}, strings.Fields(args)...)...)
		}
		for _, dry := range []bool{true, false} {
			if found, err := RemoveFormer(t.Context(), dry); err != nil || !found {
				t.Fatalf("with the chain: %v, %v", found, err)
			}
		}
		if out := run(t, "iptables", "-w", "5", "-t", "nat", "-S"); strings.Contains(out, FormerChain) || !strings.Contains(out, "-j OTHER") {
			t.Errorf("left: %s", out)
		}
	})
}

// many are n Services with two node ports and four providers each.
func many(n int) (out []Service) {
	for i := range n {
		var s Service
		s.ID = fmt.Sprintf("load/s%04d", i)
		backends := BackendSet{Providers: at()}
		for j := range 4 {
			backends.Providers = append(backends.Providers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{20, byte(j), byte(i >> 8), byte(i)}), 8080))
		}
		for _, addr := range []netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80), netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(30000+i)),
		} {
			s.Frontends = append(s.Frontends, Frontend{Name: "http", Proto: unix.IPPROTO_TCP, Addr: addr, Inside: backends, Outside: backends, Keeps: backends.Providers})
		}
		out = append(out, s)
	}
	return out
}

// BenchmarkFirst writes 1,000 Services into an empty table.
func BenchmarkFirst(b *testing.B) {
	inNode(b, func() {
		services := many(1000)
		for b.Loop() {
			k := open4test(b)
			k.become(b, services...)
		}
	})
}

// BenchmarkChange has one provider of 1,000 Services come and go.
func BenchmarkChange(b *testing.B) {
	inNode(b, func() {
		services := many(1000)
		k := open4test(b)
		p := New(Config{})
		for _, s := range services {
			p.Set(s)
		}
		p.Release()
		one, other := services[500], many(501)[500]
		for i := range other.Frontends {
			w := BackendSet{Providers: other.Frontends[i].Inside.Providers[1:]}
			other.Frontends[i].Inside, other.Frontends[i].Outside, other.Frontends[i].Keeps = w, w, w.Providers
		}
		start := time.Now()
		n := 0
		for b.Loop() {
			for _, s := range []Service{one, other} {
				p.Set(s)
				all, _ := p.wanted()
				k.want(all.program)
				if err := k.apply(context.Background()); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000/float64(n), "ms/change")
	})
}

// BenchmarkRestart finds that all of 1,000 Services are there already.
func BenchmarkRestart(b *testing.B) {
	inNode(b, func() {
		k := open4test(b)
		k.become(b, many(1000)...)
		for b.Loop() {
			again := open4test(b)
			again.want(k.program)
			if err := again.read(context.Background()); err != nil || again.pending() != 0 {
				b.Fatal(err, again.pending())
			}
		}
	})
}

// A provider of datagrams that ends takes no new clients at first, and then none at
// all: the second is no change of the table, but its clients are led on.
func TestClientsOfOneThatEnds(t *testing.T) {
	inNode(t, func() {
		for _, args := range []string{
			"link set lo up", "link add eth0 type veth peer name eth1", "address add 198.51.100.1/24 dev eth0", "link set eth0 up", "link set eth1 up",
			"route add 10.96.0.0/16 dev eth0", "route add 20.1.0.0/16 dev eth0", "neigh add 20.1.0.2 lladdr 02:00:00:00:00:02 dev eth0",
			"neigh add 20.1.0.3 lladdr 02:00:00:00:00:03 dev eth0",
		} {
			run(t, append([]string{"ip"}, strings.Fields(args)...)...)
		}
		log := logrus.New()
		log.SetLevel(logrus.PanicLevel)
		n := &node{health: newHealth(log), cfg: testConfig, log: log}
		p := New(Config{Log: log})
		p.Release()
		declare := func(takes, keeps []netip.AddrPort) {
			t.Helper()
			backends := BackendSet{Providers: takes}
			p.Set(Service{ID: "a/b", Frontends: []Frontend{{Name: "dns", Proto: unix.IPPROTO_UDP, Addr: at("10.96.0.10:53")[0], Inside: backends, Outside: backends, Keeps: keeps}}})
			all, _ := p.wanted()
			if err := n.realise(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		led := func() (to string) {
			t.Helper()
			c, err := net.DialUDP("udp", &net.UDPAddr{Port: 5555}, net.UDPAddrFromAddrPort(at("10.96.0.10:53")[0]))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			flows, err := netx.ListSafely(func() ([]*netlink.ConntrackFlow, error) {
				return netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range flows {
				if f.Forward.DstPort == 53 {
					to += f.Reverse.SrcIP.String()
				}
			}
			return to
		}
		both := at("20.1.0.2:53", "20.1.0.3:53")
		for _, step := range []struct {
			takes, keeps []netip.AddrPort
			want         string
		}{{both[:1], both[:1], "20.1.0.2"}, {both[1:], both, "20.1.0.2"}, {both[1:], both[1:], "20.1.0.3"}} {
			declare(step.takes, step.keeps)
			if got := led(); got != step.want {
				t.Errorf("with providers %v, of whom %v take clients, the client is led to %s, expected %s", step.keeps, step.takes, got, step.want)
			}
		}
	})
}
