package nodeproxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// program is what is in the table besides what always is.
type program struct {
	chains   map[string][]string  // rules in nft's language, by name
	sets     map[string]memory    // of clients, by name
	elements map[element]pointing // of maps
}

// memory is a set of clients that have come to a provider lately.
type memory struct {
	family  string // nft's: ipv4_addr or ipv6_addr
	seconds int
}

// element is a key in one of the maps.
type element struct{ in, key string }

// pointing is what an element says: a verdict, and for whom.
type pointing struct{ verdict, comment string }

func newProgram() program {
	return program{chains: map[string][]string{}, sets: map[string]memory{}, elements: map[element]pointing{}}
}

// add takes another program over. Of two that want one element the first gets it.
func (p program) add(o program) {
	maps.Copy(p.chains, o.chains)
	maps.Copy(p.sets, o.sets)
	for k, v := range o.elements {
		if _, taken := p.elements[k]; !taken {
			p.elements[k] = v
		}
	}
}

// String prints the program in nft's language, in an order of its own.
func (p program) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.sets)) {
		fmt.Fprintf(&b, "set %s { type %s; timeout %ds; }\n", name, p.sets[name].family, p.sets[name].seconds)
	}
	for _, name := range slices.Sorted(maps.Keys(p.chains)) {
		fmt.Fprintf(&b, "chain %s {\n", name)
		for _, rule := range p.chains[name] {
			fmt.Fprintf(&b, "\t%s\n", rule)
		}
		b.WriteString("}\n")
	}
	var lines []string
	for e, v := range p.elements {
		lines = append(lines, fmt.Sprintf("element %s { %s comment %q : %s }\n", e.in, e.key, v.comment, v.verdict))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
	return b.String()
}
