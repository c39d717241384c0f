package nodeproxy

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// markBit is set, in the mark of a packet, between the translation of its destination
// and that of its source. (Bits 13 to 15 are those of portmap and kube-proxy.)
const markBit = 1 << 12

// compile says what a Service needs.
func compile(s Service) program {
	c := compiler{service: s, program: newProgram()}
	for _, frontend := range s.Frontends {
		c.frontend(frontend)
	}
	return c.program
}

// maxComment is how many bytes nft takes in a comment (NFTNL_UDATA_COMMENT_MAXLEN).
const maxComment = 128

// comment makes a name fit to stand in nft's language between quotation marks, which
// knows no way to escape them: whoever wrote the name must not write rules.
func comment(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return '?'
		}
		return r
	}, name)
	return clean[:min(len(clean), maxComment)]
}

type compiler struct {
	service Service
	program program
}

// family is what differs between the families in nft's language.
type family struct{ digit, header, addr string }

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return family{"4", "ip", "ipv4_addr"}
	}
	return family{"6", "ip6", "ipv6_addr"}
}

var protocols = map[uint8]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp"}

func (c compiler) frontend(s Frontend) {
	proto, known := protocols[s.Proto]
	if !known || !s.Addr.IsValid() {
		return
	}
	fam := familyOf(s.Addr.Addr())
	service, gate := "services"+fam.digit, "gates"+fam.digit
	key := fmt.Sprintf("%s . %s . %d", s.Addr.Addr(), proto, s.Addr.Port())
	if s.Addr.Addr().IsUnspecified() {
		service, gate = "nodeports"+fam.digit, "nodegates"+fam.digit
		key = fmt.Sprintf("%s . %d", proto, s.Addr.Port())
	}
	point := func(in, verdict string) {
		if verdict != "" {
			c.program.elements[element{in, key}] = pointing{verdict, comment(strings.TrimSuffix(c.service.ID+":"+s.Name, ":"))}
		}
	}
	inside, outside := c.backends(s, fam, proto, s.Inside), c.backends(s, fam, proto, s.Outside)
	point(service, c.splitBySource(inside, outside))
	closed := c.splitBySource(s.Inside.closed(), s.Outside.closed())
	if s.Sources != nil {
		if keepOut := sourceRangeRule(fam, s.Sources); keepOut != "" {
			closed = c.chain("gate", slices.DeleteFunc([]string{keepOut, closed}, func(r string) bool { return r == "" })...)
		}
	}
	point(gate, closed)
}

// splitBySource tells inside and outside apart, where that makes a difference.
func (c compiler) splitBySource(inside, outside string) string {
	if inside == outside {
		return inside
	}
	var rules []string
	for _, from := range []string{"fib saddr type local", "iifname @inside"} {
		if inside == "" {
			rules = append(rules, from+" return")
		} else {
			rules = append(rules, from+" "+inside)
		}
	}
	if outside != "" {
		rules = append(rules, outside)
	}
	return c.chain("split", rules...)
}

// sourceRangeRule drops what does not come from one of the sources; "" when all
// are.
func sourceRangeRule(fam family, sources []netip.Prefix) string {
	var mine []string
	for _, p := range sources {
		// nft takes no ranges that overlap.
		wider := func(o netip.Prefix) bool { return o.Bits() < p.Bits() && o.Contains(p.Addr()) }
		switch {
		case familyOf(p.Addr()) != fam || slices.ContainsFunc(sources, wider):
		case p.Bits() == 0:
			return ""
		default:
			mine = append(mine, p.Masked().String())
		}
	}
	if len(mine) == 0 {
		return "goto silence"
	}
	slices.Sort(mine)
	return fmt.Sprintf("%s saddr != { %s } goto silence", fam.header, strings.Join(slices.Compact(mine), ", "))
}

// closed is what becomes of those for whom there is no provider.
func (w BackendSet) closed() string {
	switch {
	case len(w.Providers) > 0:
		return ""
	case w.Silent:
		return "goto silence"
	}
	return "goto refusal"
}

// backends is the chain that translates the destination, as a verdict; "" without providers.
func (c compiler) backends(s Frontend, fam family, proto string, w BackendSet) string {
	n := len(w.Providers)
	if n == 0 {
		return ""
	}
	rules := []string{fmt.Sprintf("meta mark set meta mark | %#x", markBit)}
	translate := fmt.Sprintf("meta l4proto %s dnat %s to ", proto, fam.header)
	if c.service.Affinity == 0 {
		var each []string
		for i, p := range w.Providers {
			each = append(each, fmt.Sprintf("%d : %s . %d", i, p.Addr(), p.Port()))
		}
		if n == 1 {
			return c.chain("backends", append(rules, translate+w.Providers[0].String())...)
		}
		return c.chain("backends", append(rules, fmt.Sprintf("%snumgen random mod %d map { %s }", translate, n, strings.Join(each, ", ")))...)
	}
	var each []string
	for i, p := range w.Providers {
		set := c.memory(s, fam, p)
		to := c.chain("to", fmt.Sprintf("update @%s { %s saddr }", set, fam.header), translate+p.String())
		rules = append(rules, fmt.Sprintf("%s saddr @%s %s", fam.header, set, to))
		each = append(each, fmt.Sprintf("%d : %s", i, to))
	}
	return c.chain("backends", append(rules, fmt.Sprintf("numgen random mod %d vmap { %s }", n, strings.Join(each, ", ")))...)
}

// memory is the set of clients that a provider keeps.
func (c compiler) memory(s Frontend, fam family, provider netip.AddrPort) string {
	m := memory{fam.addr, int(max(c.service.Affinity/time.Second, 1))}
	name := name("kept", c.service.ID, s.Name, fmt.Sprint(s.Proto, " ", m), provider.String())
	c.program.sets[name] = m
	return name
}

// chain adds a chain and returns the verdict that goes there.
func (c compiler) chain(kind string, rules ...string) string {
	name := name(kind, rules...)
	c.program.chains[name] = rules
	return "goto " + name
}

// name is a name that follows from what it names: 64 bits of a hash.
func name(kind string, what ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(what, "\n")))
	return fmt.Sprintf("%s-%x", kind, sum[:8])
}
