package ovsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/contiv/netplugin/drivers/ovsd/nexthop"
	"github.com/contiv/netplugin/drivers/ovsd/veth"

	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// A host with only one interface shares it with its VLANs (Config.Takeover): the interface
// goes into a bridge of its own, UplinkBridge, that forwards like a plain switch, without
// our flows. So the host stays reachable whatever happens to the agent, the store and the
// mode. The bridge's local port has the interface's MAC and the host's addresses and
// routes; a pair of patch ports connects it to the VLAN bridge.
//
// The former configuration of the interfaces is recorded in the bridge's row before
// anything moves, and the row is removed last: if the agent ends in between, the next
// start, or Cleanup, knows what to restore.

// UplinkBridge is the bridge of uplinks that are taken over, and its local port.
const UplinkBridge = "contivUplink"

const (
	patchToUplink = "contivup0" // in the VLAN bridge
	patchToVLAN   = "contivup1" // in the UplinkBridge
	takenEndpoint = "takenUplink"
	patchEndpoint = "takenPatch"
	takenKey      = "contiv-takeover"
)

// uplinkEndpoints are the endpoint keys of uplink ports, by bridge.
var uplinkEndpoints = map[string]string{VLANBridge: uplinkEndpoint, UplinkBridge: takenEndpoint}

// takeover is the former configuration of uplinks that are taken over.
type takeover struct {
	// moving is held from reading the record to having acted on it: else what keeps the
	// configuration on the bridge would undo its return to the interfaces.
	moving sync.Mutex
	mu     sync.Mutex
	had    linkConfigs
}

func (t *takeover) hold(had linkConfigs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.had = had
}

func (t *takeover) held() linkConfigs {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.had
}

func (t *takeover) holds() bool { return len(t.held()) > 0 }

// linkConfigs are configurations of interfaces, by name.
type linkConfigs map[string]hostnet.LinkConfig

// taken reads the recorded configuration; false: no uplink is taken over.
func taken(v ovsdb.View) (linkConfigs, bool, error) {
	_, row, ok := v.Find("Bridge", "name", UplinkBridge)
	if !ok {
		return nil, false, nil
	}
	var b linkConfigs
	if err := json.Unmarshal([]byte(row.Map("external_ids")[takenKey]), &b); err != nil {
		return nil, true, fmt.Errorf("bridge %s: what its interfaces had is not legible: %w", UplinkBridge, err)
	}
	return b, true, nil
}

func (d *Driver) taken() (b linkConfigs, ok bool, err error) {
	d.db.View(func(v ovsdb.View) { b, ok, err = taken(v) })
	return b, ok, err
}

// ensureTakeover takes the uplinks over if they carry what the host itself needs, or gives
// them back if that is no longer wanted. It reports whether they are taken over.
func (d *Driver) ensureTakeover(ctx context.Context, uplinks []string) (bool, error) {
	noted, exists, err := d.taken()
	if err != nil {
		return false, err
	}
	if !exists { // perhaps somebody has removed the bridge
		noted = d.takeover.held()
	}
	wanted := d.cfg.Takeover && len(uplinks) > 0
	for name := range noted {
		wanted = wanted && slices.Contains(uplinks, name)
	}
	if exists && !wanted {
		return false, d.endTakeover(ctx, noted)
	}
	needed := exists || len(noted) > 0 || slices.ContainsFunc(uplinks, func(name string) bool { return checkUplink(name, d.cfg) != nil })
	if !wanted || !needed {
		return false, nil
	}
	if err := d.noteTakeover(ctx, uplinks, noted, exists); err != nil {
		return false, err
	}
	if err := d.db.Wait(ctx, func(v ovsdb.View) bool {
		_, row, _ := v.Find("Interface", "name", UplinkBridge)
		_, numbered := row.Int("ofport")
		return numbered && veth.Exists(UplinkBridge)
	}); err != nil {
		return false, fmt.Errorf("wait for the port %s: %w", UplinkBridge, err)
	}
	if err := d.ensureUplinkPort(ctx, UplinkBridge, uplinks); err != nil {
		return false, err
	}
	if err := d.ensurePatch(ctx); err != nil {
		return false, err
	}
	return true, d.holdTakeover()
}

// noteTakeover creates the bridge with the record of its interfaces' configuration, or adds
// to the record what other tools have configured since.
func (d *Driver) noteTakeover(ctx context.Context, uplinks []string, noted linkConfigs, exists bool) error {
	now := maps.Clone(noted)
	if now == nil {
		now = linkConfigs{}
	}
	for _, name := range uplinks {
		link, err := netlinksafe.LinkByName(name)
		if err != nil {
			return errs.New(errs.Invalid, "uplink %s: no such interface on this host; name one that leads to the VLAN network", name)
		}
		found, err := hostnet.ReadLinkConfig(link)
		if err != nil {
			return fmt.Errorf("uplink %s: %w", name, err)
		}
		before, known := now[name]
		switch {
		case !known:
			now[name] = found
		case !found.Empty():
			now[name] = before.With(found)
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	d.takeover.hold(now)
	if exists {
		id, row, _ := d.find("Bridge", "name", UplinkBridge)
		if row.Map("external_ids")[takenKey] == string(text) {
			return nil
		}
		return d.setExternalID(ctx, "Bridge", id, takenKey, string(text))
	}
	first := now[uplinks[0]]
	for _, name := range uplinks { // the host's neighbors know it by the MAC of the one in use
		if !now[name].Empty() {
			first = now[name]
			break
		}
	}
	ops := []ovsdb.Operation{
		ovsdb.Insert("Interface", "localif", ovsdb.Row{"name": UplinkBridge, "type": "internal", "mtu_request": first.MTU}),
		ovsdb.Insert("Port", "local", ovsdb.Row{"name": UplinkBridge, "vlan_mode": "access", "tag": untagged, "interfaces": ovsdb.NamedUUID("localif")}),
		ovsdb.Insert("Bridge", "bridge", ovsdb.Row{
			"name": UplinkBridge, "datapath_type": d.cfg.datapathType(), "fail_mode": "standalone", "ports": ovsdb.NamedUUID("local"),
			"other_config": ovsdb.StringMap(map[string]string{"hwaddr": first.MAC, "datapath-id": datapathID(d.cfg.HostLabel, UplinkBridge), "disable-in-band": "true"}),
			"external_ids": ovsdb.StringMap(map[string]string{ownerKey: ownerMark, takenKey: string(text)}),
		}),
		ovsdb.Mutate("Open_vSwitch", nil, ovsdb.InsertInto("bridges", ovsdb.NamedUUID("bridge"))),
	}
	if _, err := d.db.Transact(ctx, ops...); err != nil {
		return fmt.Errorf("create bridge %s: %w", UplinkBridge, err)
	}
	d.cfg.Log.WithField("interfaces", uplinks).Info("the host's addresses on its uplinks move to " + UplinkBridge + "; netplugin cleanup moves them back")
	return nil
}

// ensurePatch connects the bridge of the interfaces with the VLAN bridge; its end there is
// the uplink.
func (d *Driver) ensurePatch(ctx context.Context) error {
	if _, _, ok := d.find("Interface", "name", patchToVLAN); ok {
		return nil
	}
	mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark, endpointKey: patchEndpoint})
	port := ovsdb.Row{"name": patchToVLAN, "vlan_mode": "trunk", "trunks": d.trunks(), "external_ids": mark}
	patch := ovsdb.Row{"name": patchToVLAN, "type": "patch", "options": ovsdb.StringMap(map[string]string{"peer": patchToUplink}), "external_ids": mark}
	if _, err := d.db.Transact(ctx, addPort(UplinkBridge, "patch", port, patch)...); err != nil {
		return fmt.Errorf("lead from bridge %s to %s: %w", UplinkBridge, VLANBridge, err)
	}
	return nil
}

// holdTakeover makes sure that the bridge's local port has the recorded configuration. The
// port may be a new one: the userspace datapath recreates it whenever the switch starts.
func (d *Driver) holdTakeover() error {
	d.takeover.moving.Lock()
	defer d.takeover.moving.Unlock()
	noted, ok, err := d.taken()
	if err != nil || !ok {
		return err
	}
	local, err := netlinksafe.LinkByName(UplinkBridge)
	if err != nil {
		return errs.New(errs.Unavailable, "the port %s has no link yet: %w", UplinkBridge, err)
	}
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		link, err := netlinksafe.LinkByName(name)
		if err != nil {
			return fmt.Errorf("uplink %s: %w", name, err)
		}
		b := noted[name]
		if err := b.Move(link, local); err != nil {
			return fmt.Errorf("uplink %s: %w", name, err)
		}
		if !d.kernelBridge(UplinkBridge) {
			if err := b.Mute(link); err != nil {
				return fmt.Errorf("uplink %s: %w", name, err)
			}
		}
	}
	return nil
}

// keepTakeover restores the configuration whenever links change.
func (d *Driver) keepTakeover(ctx context.Context) error {
	if !d.cfg.Takeover {
		return nil
	}
	links, err := nexthop.Watch(ctx, UplinkBridge)
	if err != nil {
		return err
	}
	for {
		var again <-chan time.Time
		if err := d.holdTakeover(); err != nil {
			d.cfg.Log.WithError(err).Warn("the host lacks addresses of its uplinks; retrying")
			again = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-links:
		case <-again:
		}
	}
}

// endTakeover gives the uplinks back and removes the bridge.
func (d *Driver) endTakeover(ctx context.Context, noted linkConfigs) error {
	d.takeover.moving.Lock()
	defer d.takeover.moving.Unlock()
	if err := noted.giveBack(); err != nil {
		return err
	}
	id, _, _ := d.find("Bridge", "name", UplinkBridge)
	if err := removeBridge(ctx, d.db, UplinkBridge, id); err != nil {
		return err
	}
	if err := d.db.Wait(ctx, func(v ovsdb.View) bool { // or keepTakeover would find it, and take over again
		_, _, exists := v.Find("Bridge", "name", UplinkBridge)
		return !exists
	}); err != nil {
		return fmt.Errorf("wait for the removal of bridge %s: %w", UplinkBridge, err)
	}
	if err := noted.giveBackLast(ctx, d.db); err != nil {
		return err
	}
	d.takeover.hold(nil)
	d.cfg.Log.WithField("interfaces", slices.Sorted(maps.Keys(noted))).Info("the uplinks have the host's addresses again")
	return nil
}

// giveBack moves everything from the bridge's local port back to the interfaces. Interfaces
// that no longer exist are skipped.
func (b linkConfigs) giveBack() error {
	local, err := netlinksafe.LinkByName(UplinkBridge)
	var missing netlink.LinkNotFoundError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(b)) {
		link, err := netlinksafe.LinkByName(name)
		if errors.As(err, &missing) {
			continue
		}
		if err == nil {
			err = b[name].Unmute(link)
		}
		if err == nil {
			err = b[name].Move(local, link)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("uplink %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// switchPatience is how long a switch that runs takes at most to remove a bridge.
const switchPatience = 10 * time.Second

// giveBackLast repeats giveBack when the switch has closed the interfaces: it writes all
// flags of an interface then, with the values that the others had when it last looked. A
// switch that does not run has nothing to close.
func (b linkConfigs) giveBackLast(ctx context.Context, db *ovsdb.Client) error {
	closing, cancel := context.WithTimeout(ctx, switchPatience)
	defer cancel()
	if err := db.Wait(closing, settled); err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for the switch to close %s: %w", slices.Sorted(maps.Keys(b)), err)
	}
	return b.giveBack()
}

// describe lists the recorded configuration as text.
func (b linkConfigs) describe() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		out = append(out, strconv.Itoa(len(b[name].Addrs))+" addresses and "+strconv.Itoa(len(b[name].Routes))+" routes from "+UplinkBridge+", which are those of "+name+" again")
	}
	return out
}
