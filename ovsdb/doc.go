// Package ovsdb is a client of the Open vSwitch database protocol (RFC 7047), with
// the monitor_cond extension of ovsdb-server(7).
//
// A Client keeps one connection to one database and a cache of the tables it was
// told to monitor. Run dials, reads the schema and the tables, follows the changes,
// and starts over with a full re-read whenever the connection is lost, until its
// context ends. Readers never go to the server: they look at the cache (View), wait
// for it to hold what they need (Wait), or are called for each change (OnChange).
//
//	db := ovsdb.New(ovsdb.Config{Target: "unix:/run/openvswitch/db.sock", Monitor: map[string][]string{
//		"Interface": {"name", "ofport"},
//	}})
//	go db.Run(ctx)
//	err := db.Wait(ctx, func(v ovsdb.View) bool {
//		_, row, ok := v.Find("Interface", "name", "eth0")
//		n, _ := row.Int("ofport")
//		return ok && n > 0
//	})
//
// Writers join operations into one transaction, which the server applies whole or
// not at all:
//
//	_, err := db.Transact(ctx, ovsdb.Insert("Bridge", "br", ovsdb.Row{"name": "br0"}),
//		ovsdb.Mutate("Open_vSwitch", nil, ovsdb.InsertInto("bridges", ovsdb.NamedUUID("br"))))
//
// # Values
//
// In a Row, an OVSDB value is a Go value: string, int64, float64, bool, UUID; Set for
// a column that holds any number of values, one included; Map for a map column.
// A column of at most one value that is empty is Set(nil).
package ovsdb
