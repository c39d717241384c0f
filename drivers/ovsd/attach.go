package ovsd

import (
	"context"
	"fmt"

	"github.com/contiv/netplugin/drivers/ovsd/veth"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// Attach gives an endpoint of this host a port. A port that exists is kept if both ends of
// its veth pair are in place, and replaced otherwise.
func (d *Driver) Attach(ctx context.Context, a drivers.Attachment, encap ofnet.Encap, tag uint16) (drivers.Port, error) {
	side, ok := d.bridges[encap]
	if !ok {
		return drivers.Port{}, errs.New(errs.Invalid, "endpoint %s: unknown encapsulation %d", a.EndpointID, encap)
	}
	if err := d.awaitStart(ctx); err != nil {
		return drivers.Port{}, fmt.Errorf("port for endpoint %s: %w", a.EndpointID, err)
	}
	if have, in, ok := d.attachment(a.EndpointID); ok {
		if in == side && have.Netns == a.Netns && have.IfName == a.IfName && veth.Exists(have.Port.OVSName) {
			return have.Port, nil
		}
		if err := d.Detach(ctx, a.EndpointID); err != nil {
			return drivers.Port{}, err
		}
	}
	number, release := d.reserveNumber()
	defer release()
	name := portName(number)
	port := drivers.Port{Name: containerSide(name), OVSName: name, MTU: d.measureMTU(side)}
	inside := a.IfName
	if a.Netns == "" {
		inside = port.Name
	}
	if err := veth.Make(name, a.Netns, inside, port.MTU); err != nil {
		return drivers.Port{}, fmt.Errorf("port for endpoint %s: %w", a.EndpointID, err)
	}
	if err := d.addEndpointPort(ctx, side, number, a, tag); err != nil {
		if undo := veth.Remove(name); undo != nil {
			d.cfg.Log.WithError(undo).Warn("a link is left behind")
		}
		return drivers.Port{}, fmt.Errorf("port %s for endpoint %s: %w", name, a.EndpointID, err)
	}
	return port, nil
}

// awaitStart waits until the bridges exist.
func (d *Driver) awaitStart(ctx context.Context) error {
	for {
		d.mu.Lock()
		started, why, changed := d.status.started, d.status.err, d.changed.Next()
		d.mu.Unlock()
		if started {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if why == nil {
				why = ctx.Err()
			}
			return errs.New(errs.Unavailable, "the bridges are not set up: %w", why)
		}
	}
}

// addEndpointPort adds a veth's end to the bridge, labeled with its endpoint, and waits
// until it is in the database's cache. The OpenFlow port number arrives later.
func (d *Driver) addEndpointPort(ctx context.Context, side *bridge, number int, a drivers.Attachment, tag uint16) error {
	name := portName(number)
	var uplink []ovsdb.Operation // must carry the VLAN before a port uses it
	port := ovsdb.Row{"name": name, "external_ids": ovsdb.StringMap(map[string]string{ownerKey: ownerMark, endpointKey: a.EndpointID})}
	if side.encap == ofnet.VLAN {
		vlan := d.accessTag(a.EndpointID, tag)
		port["vlan_mode"] = "access"
		port["tag"] = int(vlan)
		uplink = d.trunkOps(vlan)
	}
	ifc := ovsdb.Row{"name": name, "ofport_request": number, "external_ids": ovsdb.StringMap(map[string]string{
		ownerKey: ownerMark, endpointKey: a.EndpointID,
		tenantKey: a.Tenant, networkKey: a.Network, containerKey: a.ContainerID, ifnameKey: a.IfName, netnsKey: a.Netns, podKey: a.Pod, podUIDKey: a.PodUID, configKey: a.Config,
	})}
	if _, err := d.db.Transact(ctx, append(uplink, addPort(side.name, "p", port, ifc)...)...); err != nil {
		return err
	}
	return d.db.Wait(ctx, func(v ovsdb.View) bool {
		_, _, ok := v.Find("Interface", "name", name)
		return ok
	})
}

// Detach removes an endpoint's port and its veth pair.
func (d *Driver) Detach(ctx context.Context, endpointID string) error {
	type found struct {
		bridge, name string
		port         ovsdb.UUID
	}
	var all []found
	d.db.View(func(v ovsdb.View) {
		for _, side := range d.bridges {
			for _, p := range bridgePorts(v, side.name) {
				if ids := p.row.Map("external_ids"); ids[endpointKey] == endpointID && ids[ownerKey] == ownerMark {
					all = append(all, found{side.name, p.row.String("name"), p.id})
				}
			}
		}
	})
	for _, f := range all {
		if err := d.removePorts(ctx, f.bridge, f.port); err != nil {
			return fmt.Errorf("remove port %s of endpoint %s: %w", f.name, endpointID, err)
		}
		if err := veth.Remove(f.name); err != nil {
			return fmt.Errorf("endpoint %s: %w", endpointID, err)
		}
	}
	return nil
}

// Attachments lists the ports of endpoints, as recorded in the database.
func (d *Driver) Attachments() []drivers.Attachment {
	var out []drivers.Attachment
	d.eachAttachment(func(a drivers.Attachment, _ *bridge) { out = append(out, a) })
	return out
}

func (d *Driver) eachAttachment(do func(drivers.Attachment, *bridge)) {
	d.db.View(func(v ovsdb.View) {
		for _, side := range d.bridges {
			for _, p := range bridgePorts(v, side.name) {
				if a, ok := asAttachment(p.row, side); ok {
					do(a, side)
				}
			}
		}
	})
}

// attachment returns an endpoint's port and the bridge it is in.
func (d *Driver) attachment(endpointID string) (have drivers.Attachment, in *bridge, ok bool) {
	d.eachAttachment(func(a drivers.Attachment, s *bridge) {
		if a.EndpointID == endpointID {
			have, in, ok = a, s, true
		}
	})
	return have, in, ok
}

func asAttachment(row ovsdb.Row, side *bridge) (drivers.Attachment, bool) {
	ids := row.Map("external_ids")
	name := row.String("name")
	if _, isPort := portNumber(name); !isPort || ids[ownerKey] != ownerMark || ids[endpointKey] == "" {
		return drivers.Attachment{}, false
	}
	return drivers.Attachment{
		EndpointID: ids[endpointKey], Tenant: ids[tenantKey], Network: ids[networkKey], ContainerID: ids[containerKey], IfName: ids[ifnameKey], Netns: ids[netnsKey], Pod: ids[podKey], PodUID: ids[podUIDKey], Config: ids[configKey],
		Port: drivers.Port{Name: containerSide(name), OVSName: name, MTU: side.mtu()},
	}, true
}
