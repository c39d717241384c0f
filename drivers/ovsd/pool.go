package ovsd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// pool keeps ports of one bridge ready to be handed out. Until Open vSwitch has given
// a new port its number takes some ten milliseconds, most of what attaching a container
// costs; the pool pays that ahead of time, and for many ports in one transaction.
//
// A prepared port is a veth pair whose switch end is in the bridge, marked poolKey,
// without tag and without flows: nothing passes through it.
type pool struct {
	d      *Driver
	bridge string
	mtu    func() int
	log    logrus.FieldLogger

	mu     sync.Mutex
	free   []string      // switch-side names, oldest first
	target int           // ports to keep ready; 0 until the bridge is used
	wanted int           // takers that wait
	change chan struct{} // closed and replaced when free changes
	kick   chan struct{}
	err    error // of the last refill
}

func newPool(d *Driver, bridge string, mtu func() int) *pool {
	return &pool{
		d: d, bridge: bridge, mtu: mtu, change: make(chan struct{}), kick: make(chan struct{}, 1),
		log: d.cfg.Log.WithField("bridge", bridge),
	}
}

// use says that endpoints of this bridge are to be expected.
func (p *pool) use() {
	p.mu.Lock()
	first := p.target == 0
	p.target = p.d.cfg.PoolSize
	p.mu.Unlock()
	if first {
		p.wake()
	}
}

func (p *pool) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// adopt takes over the prepared ports an earlier run left behind, as far as they are
// usable, and removes the others.
func (p *pool) adopt(ctx context.Context) error {
	var stale []ovsdb.UUID
	var usable []string
	p.d.db.View(func(v ovsdb.View) {
		for _, port := range bridgePorts(v, p.bridge) {
			if port.row.Map("external_ids")[poolKey] == "" {
				continue
			}
			if name := port.row.String("name"); linkExists(name) && linkExists(containerSide(name)) && port.ofport > 0 {
				usable = append(usable, name)
			} else {
				stale = append(stale, port.id)
			}
		}
	})
	slices.Sort(usable)
	p.mu.Lock()
	p.free = usable
	p.mu.Unlock()
	if err := p.d.removePorts(ctx, p.bridge, stale...); err != nil {
		return fmt.Errorf("remove unusable prepared ports: %w", err)
	}
	return nil
}

// take hands out a prepared port, or waits for one.
func (p *pool) take(ctx context.Context) (string, error) {
	p.use()
	p.mu.Lock()
	p.wanted++
	defer func() {
		p.wanted--
		p.mu.Unlock()
	}()
	for len(p.free) == 0 {
		changed := p.change
		p.mu.Unlock()
		p.wake()
		select {
		case <-changed:
			p.mu.Lock()
		case <-ctx.Done():
			p.mu.Lock()
			if p.err != nil {
				return "", errs.New(errs.Unavailable, "no port of %s is ready: %w", p.bridge, p.err)
			}
			return "", errs.New(errs.Timeout, "no port of %s became ready: %w", p.bridge, ctx.Err())
		}
	}
	name := p.free[0]
	p.free = p.free[1:]
	if len(p.free) <= p.target*3/4 {
		p.wake()
	}
	return name, nil
}

// run refills the pool until ctx ends.
func (p *pool) run(ctx context.Context) {
	const slowest = 5 * time.Second
	wait := 100 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		}
		for ctx.Err() == nil {
			p.mu.Lock()
			missing := 0
			if p.target > 0 {
				missing = p.target + p.wanted - len(p.free)
			}
			p.mu.Unlock()
			if missing <= 0 {
				break
			}
			err := p.refill(ctx, min(missing, 16))
			p.mu.Lock()
			repeated := err != nil && p.err != nil && err.Error() == p.err.Error()
			p.err = err
			p.mu.Unlock()
			if err == nil {
				wait = 100 * time.Millisecond
				continue
			}
			if !repeated && ctx.Err() == nil {
				p.log.WithError(err).Warn("cannot prepare ports; retrying")
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, slowest)
		}
	}
}

// refill makes n ports in one transaction and waits for their numbers.
func (p *pool) refill(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	numbers := p.d.reserveNumbers(n)
	defer p.d.releaseNumbers(numbers)

	var names []string
	var ops []ovsdb.Operation
	for i, number := range numbers {
		name := "vvport" + strconv.Itoa(number)
		if err := makeVeth(name, containerSide(name), p.mtu()); err != nil {
			p.drop(names)
			return err
		}
		names = append(names, name)
		mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark, poolKey: p.bridge})
		ops = append(ops, addPort(p.bridge, "p"+strconv.Itoa(i), ovsdb.Row{"name": name, "external_ids": mark},
			ovsdb.Row{"name": name, "ofport_request": number, "external_ids": mark})...)
	}
	if _, err := p.d.db.Transact(ctx, ops...); err != nil {
		p.drop(names)
		return fmt.Errorf("add prepared ports: %w", err)
	}
	err := p.d.db.Wait(ctx, func(v ovsdb.View) bool {
		ready := 0
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
			if ofport, ok := row.Int("ofport"); ok && ofport > 0 && slices.Contains(names, row.String("name")) {
				ready++
			}
		})
		return ready == len(names)
	})
	if err != nil {
		p.withdraw(names)
		return fmt.Errorf("wait for the numbers of prepared ports (is ovs-vswitchd running?): %w", err)
	}
	p.mu.Lock()
	p.free = append(p.free, names...)
	close(p.change)
	p.change = make(chan struct{})
	p.mu.Unlock()
	return nil
}

// withdraw takes prepared ports that never became usable out of the database again. It
// has its own deadline, because the refill's has passed. What it cannot remove stays
// marked, and the next start adopts or removes it.
func (p *pool) withdraw(names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var ports []ovsdb.UUID
	p.d.db.View(func(v ovsdb.View) {
		for _, port := range bridgePorts(v, p.bridge) {
			if slices.Contains(names, port.row.String("name")) {
				ports = append(ports, port.id)
			}
		}
	})
	if err := p.d.removePorts(ctx, p.bridge, ports...); err != nil {
		p.log.WithError(err).Warn("unusable prepared ports are left behind")
		return
	}
	p.drop(names)
}

// drop undoes veth pairs that did not make it into the switch.
func (p *pool) drop(names []string) {
	for _, name := range names {
		if err := removeLink(name); err != nil {
			p.log.WithError(err).Warn("a link is left behind")
		}
	}
}

// ready is the number of ports that wait to be taken.
func (p *pool) ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free)
}

// containerSide is the name of the container's end: vvport7 is vport7's peer.
func containerSide(ovsName string) string { return strings.Replace(ovsName, "vvport", "vport", 1) }

// portNumber reads the number in a port's name.
func portNumber(ovsName string) (int, bool) {
	s, ok := strings.CutPrefix(ovsName, "vvport")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}

type bridgePort struct {
	id     ovsdb.UUID // of the Port row
	ifID   ovsdb.UUID
	row    ovsdb.Row // the Interface
	port   ovsdb.Row
	ofport int64
}

// bridgePorts lists the single-interface ports of a bridge.
func bridgePorts(v ovsdb.View, bridge string) []bridgePort {
	_, br, ok := v.Find("Bridge", "name", bridge)
	if !ok {
		return nil
	}
	var out []bridgePort
	for _, id := range br.UUIDs("ports") {
		port, ok := v.Row("Port", id)
		if !ok {
			continue
		}
		ifs := port.UUIDs("interfaces")
		if len(ifs) != 1 {
			continue
		}
		row, ok := v.Row("Interface", ifs[0])
		if !ok {
			continue
		}
		n, _ := row.Int("ofport")
		out = append(out, bridgePort{id: id, ifID: ifs[0], port: port, row: row, ofport: n})
	}
	return out
}

// reserveNumbers picks the lowest port numbers that neither the database nor a link of
// this host uses, and keeps them from being picked again until released.
func (d *Driver) reserveNumbers(n int) []int {
	used := map[int]bool{}
	d.db.View(func(v ovsdb.View) {
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
			if number, ok := portNumber(row.String("name")); ok {
				used[number] = true
			}
		})
	})
	d.numbers.Lock()
	defer d.numbers.Unlock()
	var out []int
	for number := 1; len(out) < n && number < lastPortNumber; number++ {
		if !used[number] && !d.numbers.reserved[number] {
			d.numbers.reserved[number] = true
			out = append(out, number)
		}
	}
	return out
}

func (d *Driver) releaseNumbers(numbers []int) {
	d.numbers.Lock()
	defer d.numbers.Unlock()
	for _, n := range numbers {
		delete(d.numbers.reserved, n)
	}
}
