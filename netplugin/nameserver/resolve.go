package nameserver

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// verdict is what the index says of a question.
type verdict uint8

const (
	foreign  verdict = iota // not ours to answer
	found                   // with records
	noData                  // the name exists, but nothing of that type (RFC 2308 section 2.2)
	noDomain                // there is no such name (RFC 8020)
)

// zone says under which names, and for how long, the index answers.
type zone struct {
	names  *Names
	domain string // lower case, without dots at the ends
	ttl    uint32 // seconds
}

// resolve answers one question of a container of a tenant.
func (z *zone) resolve(tenant string, q dns.Question) ([]dns.RR, verdict) {
	if q.Qclass != dns.ClassINET && q.Qclass != dns.ClassANY {
		return nil, foreign
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name, "."))
	if a, ok := reverse(name); ok {
		return z.pointer(tenant, q, a)
	}
	candidates, ours, exists := z.candidates(tenant, name)
	for _, c := range candidates {
		rrs, known := z.records(tenant, c.name, q, c.before)
		if len(rrs) > 0 {
			return rrs, found
		}
		exists = exists || known
	}
	switch {
	case exists:
		return nil, noData
	case ours:
		return nil, noDomain
	}
	return nil, foreign
}

// candidate is a name of the index that a question may mean, if it is one of the kinds
// before one.
type candidate struct {
	name   string
	before kind
}

// candidates are the names of the index that a name may mean: itself, or what is left
// without our domain, and the tenant before it. apex says that nothing is left.
//
// Whoever starts containers chooses their names. One with dots must not be taken for a name of
// the world, nor of another tenant, so it is known by its full name only, with tenant and
// domain. Services and groups are made by those who run the network.
func (z *zone) candidates(tenant, name string) (names []candidate, ours, apex bool) {
	names = []candidate{alone(name)}
	if name == z.domain {
		return names, true, true
	}
	inner, ours := strings.CutSuffix(name, "."+z.domain)
	if !ours {
		return names, false, false
	}
	tenant = strings.ToLower(tenant)
	if owner, rest, ok := z.names.tenantIn(inner, tenant); ok && (rest != "" || owner == tenant) {
		if owner != tenant {
			return nil, true, false
		}
		if rest != "" {
			names = append(names, candidate{rest, numKinds})
		}
		apex = rest == ""
	}
	return append(names, alone(inner)), true, apex
}

// alone is a name without its tenant.
func alone(name string) candidate {
	if strings.Contains(name, ".") {
		return candidate{name, container}
	}
	return candidate{name, numKinds}
}

// records are those of a name. ANY asks for IPv4 addresses, or failing these for IPv6.
func (z *zone) records(tenant, name string, q dns.Question, before kind) (rrs []dns.RR, known bool) {
	if q.Qtype != dns.TypeAAAA { // of other types only whether there is the name is asked
		count := 0
		if q.Qtype == dns.TypeA || q.Qtype == dns.TypeANY {
			count = maxRecords
		}
		var v4 []netip.Addr
		v4, known = z.names.lookup(tenant, name, false, count, before)
		for _, a := range v4 {
			rrs = append(rrs, &dns.A{Hdr: z.header(q.Name, dns.TypeA), A: a.AsSlice()})
		}
	}
	if q.Qtype == dns.TypeAAAA || q.Qtype == dns.TypeANY && len(rrs) == 0 {
		var v6 []netip.Addr
		v6, known = z.names.lookup(tenant, name, true, maxRecords, before)
		for _, a := range v6 {
			rrs = append(rrs, &dns.AAAA{Hdr: z.header(q.Name, dns.TypeAAAA), AAAA: a.AsSlice()})
		}
	}
	return rrs, known
}

// pointer names an address.
func (z *zone) pointer(tenant string, q dns.Question, a netip.Addr) ([]dns.RR, verdict) {
	names := z.names.hostNames(tenant, a)
	if len(names) == 0 {
		return nil, foreign
	}
	if q.Qtype != dns.TypePTR && q.Qtype != dns.TypeANY {
		return nil, noData
	}
	slices.Sort(names)
	var rrs []dns.RR
	for _, name := range slices.Compact(names) {
		full := dns.Fqdn(name + "." + tenant + "." + z.domain)
		if _, ok := dns.IsDomainName(full); ok {
			rrs = append(rrs, &dns.PTR{Hdr: z.header(q.Name, dns.TypePTR), Ptr: full})
		}
	}
	if len(rrs) == 0 {
		return nil, noData
	}
	return rrs, found
}

func (z *zone) header(name string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: z.ttl}
}

// soa bounds how long a negative answer may be kept (RFC 2308 section 3).
func (z *zone) soa() *dns.SOA {
	h := z.header(dns.Fqdn(z.domain), dns.TypeSOA)
	return &dns.SOA{
		Hdr: h, Ns: "ns." + h.Name, Mbox: "hostmaster." + h.Name, Serial: 1,
		Refresh: 3600, Retry: 600, Expire: 86400, Minttl: z.ttl,
	}
}

// reverse reads the name under which an address is looked up (RFC 1035 section 3.5,
// RFC 3596 section 2.5).
func reverse(name string) (netip.Addr, bool) {
	if v4, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		parts := strings.Split(v4, ".")
		slices.Reverse(parts)
		a, err := netip.ParseAddr(strings.Join(parts, "."))
		return a, err == nil && a.Is4() && len(parts) == 4
	}
	v6, ok := strings.CutSuffix(name, ".ip6.arpa")
	if !ok || len(v6) != 63 {
		return netip.Addr{}, false
	}
	var text strings.Builder
	for i := 62; i >= 0; i -= 2 {
		if i > 0 && v6[i-1] != '.' {
			return netip.Addr{}, false
		}
		text.WriteByte(v6[i])
		if i%8 == 0 && i > 0 { // four digits are a group
			text.WriteByte(':')
		}
	}
	a, err := netip.ParseAddr(text.String())
	return a, err == nil && a.Is6() && a.Zone() == ""
}
