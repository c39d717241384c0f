package ovsd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contiv/netplugin/drivers/ovsd/dnsns"
	"github.com/contiv/netplugin/drivers/ovsd/veth"

	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/drivers/nodeproxy"
	"github.com/contiv/netplugin/ovsdb"
)

// Cleanup removes what the driver has made on this host: bridges and links with its mark,
// nftables rules and the DNS namespace. It also restores kernel settings and the addresses
// of uplinks. It calls say for each of these; with dryRun it does nothing else. Containers
// lose their networks.
func Cleanup(ctx context.Context, cfg Config, dryRun bool, say func(string)) error {
	if err := cfg.setDefaults(); err != nil {
		return err
	}
	db := ovsdb.New(ovsdb.Config{Target: cfg.OVSDB, Monitor: monitored()})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = db.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := db.Wait(ctx, hasRoot); err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	c := cleanup{cfg: cfg, db: db, dryRun: dryRun, say: say}
	if err := c.find(); err != nil {
		return err
	}
	// Bridges go after what is recorded in them.
	for _, step := range []func(context.Context) error{
		c.limits, c.uplinks, c.kernelSettings, c.tables, c.removeBridges, c.namespace, c.removeLinks,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cleanup is one call of Cleanup, with what the database has of the driver.
type cleanup struct {
	cfg    Config
	db     *ovsdb.Client
	dryRun bool
	say    func(string)

	bridges  map[string]ovsdb.UUID // by name
	settings map[string]string     // former values of kernel settings, by path
	links    []string              // names of the switch's ends of veth pairs
	uplinked linkConfigs           // former configuration of uplinks
	vrfs     map[string]uint16
}

// find reads the database.
func (c *cleanup) find() (err error) {
	c.bridges, c.settings = map[string]ovsdb.UUID{}, map[string]string{}
	c.db.View(func(v ovsdb.View) {
		v.Each("Bridge", func(id ovsdb.UUID, row ovsdb.Row) {
			ids := row.Map("external_ids")
			if ids[ownerKey] == ownerMark {
				c.bridges[row.String("name")] = id
			}
			for key, value := range ids {
				if path, ok := strings.CutPrefix(key, settingKeyPrefix); ok {
					c.settings[path] = value
				}
			}
		})
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
			name := row.String("name")
			if _, ours := portNumber(name); ours && row.Map("external_ids")[ownerKey] == ownerMark {
				c.links = append(c.links, name)
			}
		})
		c.uplinked, _, err = taken(v)
		c.vrfs = loadVRFs(v)
	})
	slices.Sort(c.links)
	return err
}

// limits lifts the limits of tracked connections.
func (c *cleanup) limits(ctx context.Context) error {
	if c.dryRun {
		return nil
	}
	return liftLimits(ctx, c.cfg, slices.Collect(maps.Values(c.vrfs)))
}

// uplinks moves addresses and routes back to uplinks that are taken over.
func (c *cleanup) uplinks(context.Context) error {
	for _, what := range c.uplinked.describe() {
		c.say(what)
	}
	if c.dryRun {
		return nil
	}
	return c.uplinked.giveBack()
}

func (c *cleanup) kernelSettings(context.Context) error {
	for _, path := range slices.Sorted(maps.Keys(c.settings)) {
		c.say("the value of " + path + ", which was " + c.settings[path])
		if c.dryRun {
			continue
		}
		if err := hostnet.Restore(path, c.settings[path]); err != nil {
			return err
		}
	}
	return nil
}

// tables removes the rules of nftables and iptables.
func (c *cleanup) tables(ctx context.Context) error {
	for _, t := range []struct {
		what   string
		remove func(context.Context, bool) (bool, error)
	}{
		{"nftables table inet " + hostnet.Table, hostnet.RemoveRules},
		{"nftables table inet " + nodeproxy.Table, nodeproxy.Remove},
		{"chain " + nodeproxy.FormerChain + " of iptables", nodeproxy.RemoveFormer},
	} {
		found, err := t.remove(ctx, c.dryRun)
		if err != nil {
			return err
		}
		if found {
			c.say(t.what)
		}
	}
	return nil
}

func (c *cleanup) removeBridges(ctx context.Context) error {
	for name, id := range c.bridges {
		c.say("bridge " + name)
		if c.dryRun {
			continue
		}
		if err := removeBridge(ctx, c.db, name, id); err != nil {
			return err
		}
	}
	if c.dryRun || len(c.uplinked) == 0 {
		return nil
	}
	return c.uplinked.giveBackLast(ctx, c.db)
}

// namespace removes the DNS namespace.
func (c *cleanup) namespace(context.Context) error {
	path := c.cfg.dnsNamespace()
	if !dnsns.Exists(path) {
		return nil
	}
	c.say("namespace " + path)
	if c.dryRun {
		return nil
	}
	return dnsns.Remove(path)
}

func (c *cleanup) removeLinks(context.Context) error {
	for _, name := range c.links {
		if !veth.Exists(name) {
			continue
		}
		c.say("link " + name)
		if c.dryRun {
			continue
		}
		if err := veth.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
