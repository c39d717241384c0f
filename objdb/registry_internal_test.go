package objdb

import "testing"

// FuzzServices feeds the registry's reader with arbitrary entries.
func FuzzServices(f *testing.F) {
	f.Add("10.0.0.1:9999", []byte(`{"ServiceName":"netmaster","Role":"leader","Version":"","TTL":10,"HostAddr":"10.0.0.1","Port":9999,"Hostname":""}`), false)
	f.Add("", []byte("null"), false)
	f.Add("x", []byte(nil), true)
	f.Fuzz(func(t *testing.T, name string, value []byte, deleted bool) {
		root := serviceRoot("x")
		known := map[string]ServiceInfo{"old": {HostAddr: "10.0.0.9"}}
		applyServices(known, root, Batch{Events: []Event{{KV: KV{Key: root + name, Value: value}, Deleted: deleted}}})
		info, ok := known[name]
		if deleted && ok {
			t.Errorf("%q is known after its deletion", name)
		}
		if ok && info.HostAddr == "" {
			t.Errorf("%q without an address is taken for an instance", name)
		}
	})
}
