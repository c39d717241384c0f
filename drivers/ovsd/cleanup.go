package ovsd

import (
	"context"
	"fmt"
	"slices"

	"github.com/contiv/netplugin/ovsdb"
)

// Cleanup removes the bridges and links that carry the driver's mark, and calls say
// for each. With dryRun it only says. Containers attached through them lose their
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
	bridges := map[string]ovsdb.UUID{}
	var links []string
	db.View(func(v ovsdb.View) {
		v.Each("Bridge", func(id ovsdb.UUID, row ovsdb.Row) {
			if row.Map("external_ids")[ownerKey] == ownerMark {
				bridges[row.String("name")] = id
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
	for name, id := range bridges {
		say("bridge " + name)
		if dryRun {
			continue
		}
		if _, err := db.Transact(ctx, ovsdb.Mutate("Open_vSwitch", nil, ovsdb.DeleteFrom("bridges", ovsdb.Set{id}))); err != nil {
			return fmt.Errorf("remove bridge %s: %w", name, err)
		}
	}
	if room := cfg.dnsRoomPath(); isNamespace(room) {
		say("namespace " + room)
		if !dryRun {
			if err := removeDNSRoom(room); err != nil {
				return err
			}
		}
	}
	for _, name := range links {
		if !linkExists(name) {
			continue
		}
		say("link " + name)
		if dryRun {
			continue
		}
		if err := removeLink(name); err != nil {
			return err
		}
	}
	return nil
}
