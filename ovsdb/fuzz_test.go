package ovsdb

import "testing"

func FuzzUpdate(f *testing.F) {
	f.Add([]byte(`{"Bridge":{"u":{"initial":{"name":"b","ports":["set",[["uuid","p"]]],"m":["map",[["a","b"]]]}}}}`))
	f.Add([]byte(`{"Bridge":{"u":{"modify":{"ports":["set",[]],"m":["map",[["a","c"]]]}}}}`))
	f.Add([]byte(`{"Bridge":{"u":{"delete":null}}}`))
	f.Add([]byte(`{"Bridge":{"u":{"insert":{"tag":7,"x":1.5,"b":true,"n":["named-uuid","x"]}}}}`))
	sch := schema{"Bridge": {"ports": kindSet, "m": kindMap}}
	f.Fuzz(func(_ *testing.T, data []byte) {
		tables := map[string]map[UUID]Row{"Bridge": {"u": {"name": "b", "ports": UUID("q"), "m": Map{"a": "b"}}}}
		changes, err := apply(tables, sch, data)
		if err != nil {
			return
		}
		for _, c := range changes {
			for column := range c.New {
				c.New.String(column)
				c.New.Map(column)
				c.New.UUIDs(column)
			}
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"tables":{"T":{"columns":{"a":{"type":"string"},"b":{"type":{"key":"string","max":"unlimited","min":0}},"c":{"type":{"key":"string","value":"string"}}}}}}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseSchema(data) })
}
