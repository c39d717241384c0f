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

// Cleanup removes the bridges and links that carry the driver's mark, the rules that
// translate addresses, and changes of kernel settings, moves addresses of uplinks back, and calls say for each. With dryRun it only says. Containers attached through them lose their
// network.
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
	bridges, settings := map[string]ovsdb.UUID{}, map[string]string{}
	var links []string
	db.View(func(v ovsdb.View) {
		v.Each("Bridge", func(id ovsdb.UUID, row ovsdb.Row) {
			if row.Map("external_ids")[ownerKey] == ownerMark {
				bridges[row.String("name")] = id
			}
			for key, value := range row.Map("external_ids") {
				if path, ok := strings.CutPrefix(key, settingKeyPrefix); ok {
					settings[path] = value
				}
			}
		})
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
			name := row.String("name")
			if _, ours := portNumber(name); ours && row.Map("external_ids")[ownerKey] == ownerMark {
				links = append(links, name)
			}
		})
	})
	slices.Sort(links)
	// First what the bridges are the memory of.
	var noted linkConfigs
	var err error
	db.View(func(v ovsdb.View) { noted, _, err = taken(v) })
	if err != nil {
		return err
	}
	if !dryRun {
		var vrfs map[string]uint16
		db.View(func(v ovsdb.View) { vrfs = loadVRFs(v) })
		if err := liftLimits(ctx, cfg, slices.Collect(maps.Values(vrfs))); err != nil {
			return err
		}
	}
	for _, what := range noted.describe() {
		say(what)
	}
	if !dryRun {
		if err := noted.giveBack(); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		say("the value of " + path + ", which was " + settings[path])
		if dryRun {
			continue
		}
		if err := hostnet.Restore(path, settings[path]); err != nil {
			return err
		}
	}
	found, err := hostnet.RemoveRules(ctx, dryRun)
	if err != nil {
		return err
	}
	if found {
		say("nftables table inet " + hostnet.Table)
	}
	if err := cleanServices(ctx, dryRun, say); err != nil {
		return err
	}
	for name, id := range bridges {
		say("bridge " + name)
		if dryRun {
			continue
		}
		if _, err := db.Transact(ctx, ovsdb.Mutate("Open_vSwitch", nil, ovsdb.DeleteFrom("bridges", ovsdb.Set{id}))); err != nil {
			return fmt.Errorf("remove bridge %s: %w", name, err)
		}
	}
	if path := cfg.dnsNamespace(); dnsns.Exists(path) {
		say("namespace " + path)
		if !dryRun {
			if err := dnsns.Remove(path); err != nil {
				return err
			}
		}
	}
	for _, name := range links {
		if !veth.Exists(name) {
			continue
		}
		say("link " + name)
		if dryRun {
			continue
		}
		if err := veth.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// cleanServices removes what leads the host to Services of Kubernetes.
func cleanServices(ctx context.Context, dryRun bool, say func(string)) error {
	for _, c := range []struct {
		what   string
		remove func(context.Context, bool) (bool, error)
	}{
		{"nftables table inet " + nodeproxy.Table, nodeproxy.Remove},
		{"chain " + nodeproxy.FormerChain + " of iptables", nodeproxy.RemoveFormer},
	} {
		found, err := c.remove(ctx, dryRun)
		if err != nil {
			return err
		}
		if found {
			say(c.what)
		}
	}
	return nil
}
