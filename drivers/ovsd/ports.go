package ovsd

import (
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/contiv/netplugin/drivers/ovsd/veth"

	"github.com/contiv/netplugin/ovsdb"
)

// containerSide is the name of the container's end while it is in the host's network
// namespace: vport7 is the peer of vvport7.
func containerSide(ovsName string) string { return strings.Replace(ovsName, "vvport", "vport", 1) }

// portName is the name of the switch's end of port n.
func portName(n int) string { return portPrefix + strconv.Itoa(n) }

const portPrefix = "vvport"

// portNumber returns the number in a port's name.
func portNumber(ovsName string) (int, bool) {
	s, ok := strings.CutPrefix(ovsName, portPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}

// numbers assigns port numbers.
type numbers struct {
	mu       sync.Mutex
	reserved map[int]bool // picked, but possibly not in the database yet
	last     int
}

func newNumbers() numbers { return numbers{reserved: map[int]bool{}} }

// reserve picks the next unused number after the last one picked. Numbers are reused as
// late as possible, so that whatever remembers the old port does not hit the new one.
func (n *numbers) reserve(used func(number int) bool) (number int, release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range lastPortNumber {
		n.last = n.last%lastPortNumber + 1
		if number = n.last; !n.reserved[number] && !used(number) {
			break
		}
	}
	n.reserved[number] = true
	return number, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.reserved, number)
	}
}

// reserveNumber picks a number that is used neither in the database nor by a link of this
// host.
func (d *Driver) reserveNumber() (int, func()) {
	used := map[string]bool{}
	d.db.View(func(v ovsdb.View) {
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) { used[row.String("name")] = true })
	})
	return d.numbers.reserve(func(n int) bool { return used[portName(n)] || veth.Exists(portName(n)) })
}

// bridgePort is a port with one interface.
type bridgePort struct {
	id  ovsdb.UUID // of the Port row
	row ovsdb.Row  // the Interface
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
		if row, ok := v.Row("Interface", ifs[0]); ok {
			out = append(out, bridgePort{id: id, row: row})
		}
	}
	return out
}

// addPort returns the operations that add a port of one or more interfaces to a bridge.
// label must be unique within the transaction.
func addPort(bridge, label string, port ovsdb.Row, interfaces ...ovsdb.Row) []ovsdb.Operation {
	var ops []ovsdb.Operation
	var refs ovsdb.Set
	for i, row := range interfaces {
		name := label + "i" + strconv.Itoa(i)
		ops = append(ops, ovsdb.Insert("Interface", name, row))
		refs = append(refs, ovsdb.NamedUUID(name))
	}
	row := maps.Clone(port)
	row["interfaces"] = refs
	return append(ops, ovsdb.Insert("Port", label, row),
		ovsdb.Mutate("Bridge", ovsdb.ByName(bridge), ovsdb.InsertInto("ports", ovsdb.NamedUUID(label))))
}
