package nodeproxy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/knftables"

	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/errs"
)

// kernel is the table there is, and the one there is to be.
type kernel struct {
	nft     knftables.Interface
	cfg     Config
	there   bool // the table, of this edition
	chains  *delta.Map[string, struct{}]
	sets    *delta.Map[string, memory]
	points  *delta.Map[element, pointing]
	program program
}

func newKernel(nft knftables.Interface, cfg Config) *kernel {
	return &kernel{
		nft: nft, cfg: cfg, program: newProgram(),
		chains: delta.NewComparable[string, struct{}](), sets: delta.NewComparable[string, memory](),
		points: delta.NewComparable[element, pointing](),
	}
}

// open finds nft.
func open() (knftables.Interface, error) {
	nft, err := knftables.New(knftables.InetFamily, Table)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errs.New(errs.Unavailable, "load-balance Services on this node: nft is missing; install the package nftables")
	}
	if err != nil {
		return nil, errs.New(errs.Unavailable, "load-balance Services on this node: nftables does not work on this host: %w", err)
	}
	return nft, nil
}

// want says what is to be there.
func (k *kernel) want(p program) {
	k.program = p
	chains := make(map[string]struct{}, len(p.chains))
	for name := range p.chains {
		chains[name] = struct{}{}
	}
	k.chains.ReplaceDesired(chains)
	k.sets.ReplaceDesired(p.sets)
	k.points.ReplaceDesired(p.elements)
}

// read finds out what is there. Names tell what chains and sets are.
func (k *kernel) read(ctx context.Context) error {
	k.forget()
	names, err := k.nft.List(ctx, "chains")
	if knftables.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the nftables table %s: %w", Table, err)
	}
	chains := map[string]struct{}{}
	ours := edition(k.cfg)
	for _, name := range names {
		k.there = k.there || name == ours
		if strings.Contains(name, "-") && !isBase(name) {
			chains[name] = struct{}{}
		}
	}
	if !k.there { // of another edition; it goes as a whole
		return nil
	}
	k.chains.ReplaceActual(chains)
	if names, err = k.nft.List(ctx, "sets"); err != nil {
		return fmt.Errorf("read the nftables table %s: %w", Table, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "kept-") {
			wanted, _ := k.sets.Desired(name)
			k.sets.SetActual(name, wanted) // what it is has a part in its name
		}
	}
	for _, m := range verdictMaps {
		found, err := k.nft.ListElements(ctx, "map", m.name)
		if err != nil {
			return fmt.Errorf("read the map %s of the nftables table %s: %w", m.name, Table, err)
		}
		for _, e := range found {
			v := pointing{verdict: strings.Join(e.Value, " ")}
			if e.Comment != nil {
				v.comment = *e.Comment
			}
			k.points.SetActual(element{m.name, strings.Join(e.Key, " . ")}, v)
		}
	}
	return nil
}

func isBase(name string) bool {
	for _, c := range baseChains(nil) {
		if c.name == name {
			return true
		}
	}
	return strings.HasPrefix(name, "edition-")
}

func (k *kernel) forget() {
	k.there = false
	k.chains.ForgetActual()
	k.sets.ForgetActual()
	k.points.ForgetActual()
}

// intact looks, at little cost, whether others have removed something.
func (k *kernel) intact(ctx context.Context) bool {
	names, err := k.nft.List(ctx, "chains")
	return err == nil && len(names) == k.chains.LenActual()+len(baseChains(nil))+1
}

// pending counts what differs.
func (k *kernel) pending() int {
	n := k.chains.LenPending() + k.sets.LenPending() + k.points.LenPending()
	if !k.there {
		n++
	}
	return n
}

// apply makes the table as wanted, in one transaction. When it fails, nothing has
// changed, and what is there is unknown.
func (k *kernel) apply(ctx context.Context) error {
	if k.pending() == 0 {
		return nil
	}
	tx := k.nft.NewTransaction()
	if !k.there {
		tx.Add(&knftables.Table{}) // so that there is one to delete
		tx.Delete(&knftables.Table{})
		base(tx, k.cfg)
	}
	k.difference(tx)
	if err := k.nft.Run(ctx, tx); err != nil {
		k.forget()
		return fmt.Errorf("write the nftables table %s: %w", Table, err)
	}
	k.there = true
	k.chains.ReplaceActual(desired(k.chains))
	k.sets.ReplaceActual(desired(k.sets))
	k.points.ReplaceActual(desired(k.points))
	return nil
}

func desired[K comparable, V any](m *delta.Map[K, V]) map[K]V {
	out := make(map[K]V, m.Len())
	for k, v := range m.AllDesired() {
		out[k] = v
	}
	return out
}

// difference adds to tx what changes: what is new before what points at it, what is old
// after what has pointed at it.
func (k *kernel) difference(tx *knftables.Transaction) {
	var fresh, old []string
	for c := range k.chains.Pending() {
		if c.Op == delta.Remove {
			old = append(old, c.Key)
		} else {
			fresh = append(fresh, c.Key)
		}
	}
	for c := range k.sets.Pending() {
		if c.Op != delta.Remove {
			// A table has room for so many clients; who comes after them is not remembered.
			tx.Add(&knftables.Set{
				Name: c.Key, Type: c.Want.family, Flags: []knftables.SetFlag{knftables.DynamicFlag, knftables.TimeoutFlag},
				Timeout: seconds(c.Want.seconds), Size: knftables.PtrTo[uint64](mostClients),
			})
		}
	}
	for _, name := range fresh {
		tx.Add(&knftables.Chain{Name: name})
	}
	for _, name := range fresh {
		for _, rule := range k.program.chains[name] {
			tx.Add(&knftables.Rule{Chain: name, Rule: rule})
		}
	}
	for c := range k.points.Pending() {
		if c.Op != delta.Add {
			tx.Delete(&knftables.Element{Map: c.Key.in, Key: strings.Split(c.Key.key, " . ")})
		}
		if c.Op != delta.Remove {
			tx.Add(&knftables.Element{
				Map: c.Key.in, Key: strings.Split(c.Key.key, " . "), Value: []string{c.Want.verdict}, Comment: &c.Want.comment,
			})
		}
	}
	for _, name := range old { // they may refer to each other
		tx.Flush(&knftables.Chain{Name: name})
	}
	for _, name := range old {
		tx.Delete(&knftables.Chain{Name: name})
	}
	for c := range k.sets.Pending() {
		if c.Op == delta.Remove {
			tx.Delete(&knftables.Set{Name: c.Key})
		}
	}
}

// mostClients is how many clients a provider remembers.
const mostClients = 1 << 20

func seconds(n int) *time.Duration { return knftables.PtrTo(time.Duration(n) * time.Second) }
