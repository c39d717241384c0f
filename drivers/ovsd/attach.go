package ovsd

import (
	"context"
	"fmt"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

func bridgeOf(encap ofnet.Encap) string {
	if encap == ofnet.VLAN {
		return VLANBridge
	}
	return VXLANBridge
}

// Attach hands out a port for an endpoint of this host. Asking again returns the port
// it has, as long as the container's end is still in this namespace or in the container.
func (d *Driver) Attach(ctx context.Context, a drivers.Attachment, encap ofnet.Encap, tag uint16) (drivers.Port, error) {
	side, ok := d.sides[encap]
	if !ok {
		return drivers.Port{}, errs.New(errs.Invalid, "endpoint %s: unknown encapsulation %d", a.EndpointID, encap)
	}
	if have, ok := d.attachment(a.EndpointID); ok {
		return have.Port, nil
	}
	name, err := side.pool.take(ctx)
	if err != nil {
		return drivers.Port{}, fmt.Errorf("port for endpoint %s: %w", a.EndpointID, err)
	}
	if err := d.label(ctx, name, side, a, tag); err != nil {
		d.discard(side, name)
		return drivers.Port{}, fmt.Errorf("port %s for endpoint %s: %w", name, a.EndpointID, err)
	}
	return drivers.Port{Name: containerSide(name), OVSName: name, MTU: side.mtu()}, nil
}

// label turns a prepared port into an endpoint's.
func (d *Driver) label(ctx context.Context, name string, side *side, a drivers.Attachment, tag uint16) error {
	ids := map[string]string{
		ownerKey: ownerMark, endpointKey: a.EndpointID,
		containerKey: a.ContainerID, ifnameKey: a.IfName, netnsKey: a.Netns,
	}
	port := ovsdb.Row{"external_ids": ovsdb.StringMap(map[string]string{ownerKey: ownerMark, endpointKey: a.EndpointID})}
	if side.encap == ofnet.VLAN {
		port["vlan_mode"] = "access"
		port["tag"] = int(tag)
	}
	res, err := d.db.Transact(ctx,
		ovsdb.Update("Interface", ovsdb.ByName(name), ovsdb.Row{"external_ids": ovsdb.StringMap(ids)}),
		ovsdb.Update("Port", ovsdb.ByName(name), port))
	if err != nil {
		return err
	}
	if res[0].Count != 1 || res[1].Count != 1 {
		return errs.New(errs.Unavailable, "the prepared port is gone from the database")
	}
	// The cache follows with the next update; wait, so that what comes after finds it.
	return d.db.Wait(ctx, func(v ovsdb.View) bool {
		_, row, ok := v.Find("Interface", "name", name)
		return ok && row.Map("external_ids")[endpointKey] == a.EndpointID
	})
}

// discard removes a port whose state is unknown.
func (d *Driver) discard(side *side, name string) {
	side.pool.withdraw([]string{name})
}

// Detach takes an endpoint's port away, with both ends of its veth pair.
func (d *Driver) Detach(ctx context.Context, endpointID string) error {
	type found struct {
		bridge, name string
		port         ovsdb.UUID
	}
	var all []found
	d.db.View(func(v ovsdb.View) {
		for _, side := range d.sides {
			for _, p := range bridgePorts(v, side.bridge) {
				if ids := p.row.Map("external_ids"); ids[endpointKey] == endpointID && ids[ownerKey] == ownerMark {
					all = append(all, found{side.bridge, p.row.String("name"), p.id})
				}
			}
		}
	})
	for _, f := range all {
		if err := d.removePorts(ctx, f.bridge, f.port); err != nil {
			return fmt.Errorf("remove port %s of endpoint %s: %w", f.name, endpointID, err)
		}
		if err := removeLink(f.name); err != nil {
			return fmt.Errorf("endpoint %s: %w", endpointID, err)
		}
	}
	return nil
}

// Attachments lists the ports handed out to endpoints, as the database has them.
func (d *Driver) Attachments() []drivers.Attachment {
	var out []drivers.Attachment
	d.db.View(func(v ovsdb.View) {
		for _, side := range d.sides {
			for _, p := range bridgePorts(v, side.bridge) {
				if a, ok := asAttachment(p.row, side); ok {
					out = append(out, a)
				}
			}
		}
	})
	return out
}

func (d *Driver) attachment(endpointID string) (drivers.Attachment, bool) {
	for _, a := range d.Attachments() {
		if a.EndpointID == endpointID {
			return a, true
		}
	}
	return drivers.Attachment{}, false
}

func asAttachment(row ovsdb.Row, side *side) (drivers.Attachment, bool) {
	ids := row.Map("external_ids")
	name := row.String("name")
	if _, isPort := portNumber(name); !isPort || ids[ownerKey] != ownerMark || ids[endpointKey] == "" {
		return drivers.Attachment{}, false
	}
	return drivers.Attachment{
		EndpointID: ids[endpointKey], ContainerID: ids[containerKey], IfName: ids[ifnameKey], Netns: ids[netnsKey],
		Port: drivers.Port{Name: containerSide(name), OVSName: name, MTU: side.mtu()},
	}, true
}
