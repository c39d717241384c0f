package intent

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// claimKey names an address (canonical text) or a pool (first-last) of a network.
type claimKey struct{ net, what string }

// tagKey names a tag of a pool.
type tagKey struct {
	pool string
	tag  int
}

// addressTables are the claims of addresses and pools.
type addressTables struct {
	*table[claimKey, state.AddressClaim]
	ofNetwork  *index[claimKey, state.AddressClaim]
	reservedAs *index[claimKey, state.AddressClaim] // by the reservation's name
}

func newAddresses(m *model) addressTables {
	t := newTable[claimKey, state.AddressClaim](func(k claimKey) string { return state.IPAMRoot + k.net + "/" + k.what })
	addTable(m, state.IPAMRoot, t, (*loader).address)
	return addressTables{
		table:     t,
		ofNetwork: t.indexed(func(k claimKey, _ *state.AddressClaim) string { return k.net }),
		reservedAs: t.indexedEach(func(_ claimKey, c *state.AddressClaim) []string {
			if c.Reservation == "" {
				return nil
			}
			return []string{c.Reservation}
		}),
	}
}

// address reads a claim. An unreadable one still keeps its address.
func (l *loader) address(rest string, kv objdb.KV) error {
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return errs.New(errs.Invalid, "no address in the key")
	}
	k := claimKey{rest[:slash], rest[slash+1:]}
	claim := new(state.AddressClaim)
	decodeErr := json.Unmarshal(kv.Value, claim)
	s := l.model.spaces[k.net]
	if r, ok := contivmodel.ParseRange(k.what); ok && strings.Contains(k.what, "-") {
		if decodeErr != nil {
			return decodeErr
		}
		if s != nil {
			s.AddPool(ipam.Pool{Owner: claim.Owner, Range: r})
		}
	} else if a, ok := parseAddr(k.what); ok && a.String() == k.what {
		if s != nil {
			s.Take(a)
			if a.Is6() && claim.Owner != ownerGateway && kv.CreateRevision > l.newest6[k.net] {
				l.newest6[k.net] = kv.CreateRevision
				s.SetLast6(a)
			}
		}
	} else {
		return errs.New(errs.Invalid, "%q is no address or pool", k.what)
	}
	if decodeErr != nil {
		claim.Owner = "unreadable"
	}
	l.model.addrs.load(l.compact(k, claim), claim, kv.ModRevision)
	return decodeErr
}

// compact returns a key with texts that others have: the network's id, and the address as its
// endpoint has it.
func (l *loader) compact(k claimKey, claim *state.AddressClaim) claimKey {
	l.model.texts.share(&k.net)
	if id, ok := strings.CutPrefix(claim.Owner, ownerEndpoint("")); ok {
		if ep := l.model.endpoints.base[id].v; ep != nil && ep.IPAddress == k.what {
			return claimKey{k.net, ep.IPAddress}
		}
	}
	return claimKey{k.net, strings.Clone(k.what)}
}

// lateTables are releases that are still expected.
type lateTables struct {
	*table[claimKey, state.LateReleases]
	ofNetwork *index[claimKey, state.LateReleases]
}

func newLateReleases(m *model) lateTables {
	t := newTable[claimKey, state.LateReleases](func(k claimKey) string { return state.LateReleasesRt + k.net + "/" + k.what })
	addTable(m, state.LateReleasesRt, t, (*loader).lateReleases)
	return lateTables{t, t.indexed(func(k claimKey, _ *state.LateReleases) string { return k.net })}
}

// lateReleases reads which releases of an address are still expected.
func (l *loader) lateReleases(rest string, kv objdb.KV) error {
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return errs.New(errs.Invalid, "no address in the key")
	}
	late := new(state.LateReleases)
	if err := json.Unmarshal(kv.Value, late); err != nil {
		return err
	}
	l.model.late.load(claimKey{rest[:slash], rest[slash+1:]}, late, kv.ModRevision)
	return nil
}

// tagTables are the claims of tags.
type tagTables struct {
	*table[tagKey, state.TagClaim]
	ofPool *index[tagKey, state.TagClaim]
}

func newTags(m *model) tagTables {
	t := newTable[tagKey, state.TagClaim](func(k tagKey) string { return state.TagRoot + k.pool + "/" + strconv.Itoa(k.tag) })
	addTable(m, state.TagRoot, t, (*loader).tag)
	return tagTables{t, t.indexed(func(k tagKey, _ *state.TagClaim) string { return k.pool })}
}

// tag reads a claim. An unreadable one still keeps its tag.
func (l *loader) tag(rest string, kv objdb.KV) error {
	pool, text, _ := strings.Cut(rest, "/")
	p := l.model.pools[pool]
	n, err := strconv.Atoi(text)
	if p == nil || err != nil || n < 1 || strconv.Itoa(n) != text {
		return errs.New(errs.Invalid, "no pool or tag in the key")
	}
	p.Take(n)
	claim := new(state.TagClaim)
	if err := json.Unmarshal(kv.Value, claim); err != nil {
		claim.Owner = "unreadable"
		l.model.tags.load(tagKey{pool, n}, claim, kv.ModRevision)
		return err
	}
	l.model.tags.load(tagKey{pool, n}, claim, kv.ModRevision)
	return nil
}
