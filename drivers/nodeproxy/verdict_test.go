package nodeproxy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// packet is the first of a connection to a frontend.
type packet struct {
	frontend     Frontend
	src          netip.Addr
	local, links bool // from this node; from one of the links to containers
	draw         int  // what numgen draws, before the modulus
}

// machine runs programs as nftables would, as far as compile uses it.
type machine struct {
	program program
	kept    map[string]map[netip.Addr]bool
}

// verdict is where a packet goes: an address and port, "refusal", "silence", or "" when
// nothing is done with it.
func (m machine) verdict(t *rapid.T, p packet) string {
	digit, proto := "4", protocols[p.frontend.Proto]
	if p.frontend.Addr.Addr().Is6() {
		digit = "6"
	}
	key, gates, services := fmt.Sprintf("%s . %s . %d", p.frontend.Addr.Addr(), proto, p.frontend.Addr.Port()), "gates", "services"
	if p.frontend.Addr.Addr().IsUnspecified() {
		key, gates, services = fmt.Sprintf("%s . %d", proto, p.frontend.Addr.Port()), "nodegates", "nodeports"
	}
	for _, in := range []string{gates, services} {
		if v, ok := m.program.elements[element{in + digit, key}]; ok {
			if end := m.run(t, p, v.verdict); end != "" {
				return end
			}
		}
	}
	return ""
}

var (
	outOf  = regexp.MustCompile(`^ip6? saddr != \{ (.*) \} goto silence$`)
	known  = regexp.MustCompile(`^ip6? saddr @(\S+) (goto \S+)$`)
	learn  = regexp.MustCompile(`^update @(\S+) \{ ip6? saddr \}$`)
	single = regexp.MustCompile(`^meta l4proto (\w+) dnat ip6? to (\S+:\d+)$`)
	draw   = regexp.MustCompile(`^(?:meta l4proto (\w+) dnat ip6? to )?numgen random mod (\d+) v?map \{ (.*) \}$`)
)

func (m machine) run(t *rapid.T, p packet, verdict string) string {
	name, ok := strings.CutPrefix(verdict, "goto ")
	if !ok {
		t.Fatalf("verdict %q", verdict)
	}
	if name == "refusal" || name == "silence" {
		return name
	}
	rules, ok := m.program.chains[name]
	if !ok {
		t.Fatalf("no chain %s in\n%s", name, m.program)
	}
	for _, rule := range rules {
		matches, what := true, rule
		for prefix, is := range map[string]bool{"fib saddr type local ": p.local, "iifname @inside ": p.links} {
			if rest, has := strings.CutPrefix(rule, prefix); has {
				matches, what = is, rest
			}
		}
		if g := outOf.FindStringSubmatch(rule); g != nil {
			what = "goto silence"
			for text := range strings.SplitSeq(g[1], ", ") {
				matches = matches && !netip.MustParsePrefix(text).Contains(p.src)
			}
		}
		if g := known.FindStringSubmatch(rule); g != nil {
			matches, what = m.kept[g[1]][p.src], g[2]
		}
		if !matches {
			continue
		}
		if g := draw.FindStringSubmatch(rule); g != nil {
			n, _ := strconv.Atoi(g[2])
			_, what, _ = strings.Cut(strings.Split(g[3], ", ")[p.draw%n], " : ")
			if g[1] != "" {
				a, port, _ := strings.Cut(what, " . ")
				return netip.MustParseAddrPort(bracket(a) + ":" + port).String()
			}
		}
		switch g := learn.FindStringSubmatch(rule); {
		case g != nil:
			if m.kept[g[1]] == nil {
				m.kept[g[1]] = map[netip.Addr]bool{}
			}
			m.kept[g[1]][p.src] = true
		case what == "return":
			return ""
		case strings.HasPrefix(what, "goto "):
			return m.run(t, p, what)
		case single.MatchString(rule):
			return single.FindStringSubmatch(rule)[2]
		case !strings.HasPrefix(rule, "meta mark set"):
			t.Fatalf("rule %q", rule)
		}
	}
	return ""
}

func bracket(a string) string {
	if strings.Contains(a, ":") {
		return "[" + a + "]"
	}
	return a
}

// reference says where a packet may go, straight from what a frontend is to be.
func reference(p packet) []string {
	if p.frontend.Sources != nil && !slices.ContainsFunc(p.frontend.Sources, func(s netip.Prefix) bool { return s.Contains(p.src) }) {
		return []string{"silence"}
	}
	w := p.frontend.Outside
	if p.local || p.links {
		w = p.frontend.Inside
	}
	if len(w.Providers) == 0 {
		if w.Silent {
			return []string{"silence"}
		}
		return []string{"refusal"}
	}
	var out []string
	for _, a := range w.Providers {
		out = append(out, a.String())
	}
	return out
}

// Programs do what Services are to be, for every packet; and a client stays where it is
// as far as affinity says so and the provider is still one.
func TestVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		six := rapid.Bool().Draw(t, "IPv6")
		addr := func(n int) netip.Addr {
			if six {
				return netip.MustParseAddr(fmt.Sprintf("fd00:20::%x", n))
			}
			return netip.AddrFrom4([4]byte{20, 1, 0, byte(n)})
		}
		provider := rapid.Custom(func(t *rapid.T) netip.AddrPort {
			return netip.AddrPortFrom(addr(rapid.IntRange(2, 9).Draw(t, "provider")), 8080)
		})
		backends := rapid.Custom(func(t *rapid.T) BackendSet {
			return BackendSet{rapid.SliceOfNDistinct(provider, 0, 4, rapid.ID[netip.AddrPort]).Draw(t, "providers"), rapid.Bool().Draw(t, "silent")}
		})
		source := rapid.Custom(func(t *rapid.T) netip.Prefix {
			bits := addr(1).BitLen() - rapid.SampledFrom([]int{0, 1, 2, 5, addr(1).BitLen()}).Draw(t, "host bits")
			return netip.PrefixFrom(addr(rapid.IntRange(0, 15).Draw(t, "source")), bits)
		})
		var s Service
		s.ID, s.Affinity = "a/b", rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "affinity")
		for i := range rapid.IntRange(1, 4).Draw(t, "frontends") {
			frontend := Frontend{Name: "x", Proto: rapid.SampledFrom([]uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP}).Draw(t, "protocol")}
			a := addr(100 + i)
			if rapid.Bool().Draw(t, "node port") {
				a = unspecified(a)
			}
			frontend.Addr = netip.AddrPortFrom(a, uint16(30000+i))
			frontend.Inside, frontend.Outside = backends.Draw(t, "inside"), backends.Draw(t, "outside")
			if rapid.Bool().Draw(t, "one way") {
				frontend.Outside = frontend.Inside
			}
			if rapid.Bool().Draw(t, "sources") {
				frontend.Sources = rapid.SliceOfN(source, 0, 3).Draw(t, "ranges")
			}
			s.Frontends = append(s.Frontends, frontend)
		}
		m := machine{compile(s), map[string]map[netip.Addr]bool{}}
		for range 20 {
			p := packet{
				frontend: rapid.SampledFrom(s.Frontends).Draw(t, "to"), src: addr(rapid.IntRange(0, 15).Draw(t, "from")),
				local: rapid.Bool().Draw(t, "local"), links: rapid.Bool().Draw(t, "link"), draw: rapid.IntRange(0, 11).Draw(t, "draw"),
			}
			got, want := m.verdict(t, p), reference(p)
			if !slices.Contains(want, got) {
				t.Fatalf("%+v goes to %q, expected one of %q by\n%s", p, got, want, m.program)
			}
			if s.Affinity == 0 || got == "refusal" || got == "silence" {
				continue
			}
			p.draw++
			if again := m.verdict(t, p); again != got && !slices.Contains(want, again) {
				t.Fatalf("%+v goes to %q, then to %q", p, got, again)
			} else if again != got && len(keptBy(m, p.src)) == 1 {
				t.Fatalf("%+v goes to %q, and then, of its own accord, to %q", p, got, again)
			}
		}
	})
}

// keptBy are the providers that keep a client.
func keptBy(m machine, client netip.Addr) (out []string) {
	for set, clients := range m.kept {
		if clients[client] {
			out = append(out, set)
		}
	}
	return out
}
