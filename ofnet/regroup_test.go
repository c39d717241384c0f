package ofnet

import "testing"

// After an endpoint has moved to another group, or its network to another VRF, the switch
// has the same flows as if this had always been so.
func TestEndpointChangesGroup(t *testing.T) {
	moved := red
	moved.ID, moved.IPv4, moved.MAC, moved.Port = local1.ID, local1.IPv4, local1.MAC, local1.Port
	regrouped := local1
	regrouped.Group = 9
	for mode, p := range map[string]*Pipeline{"routing": vrouter(t), "bridge": vxbridge(t)} {
		for what, now := range map[string]Endpoint{"group": policed(regrouped), "VRF": moved} {
			t.Run(mode+" "+what, func(t *testing.T) {
				changed, fresh := newFakeBridge(), newFakeBridge()
				s := runSwitch(t, changed)
				s.Set("ep", p.Program(policed(local1)))
				s.InitialSyncDone()
				settle(t, s)
				before := changed.text()
				s.Set("ep", p.Program(now))
				settle(t, s)
				other := runSwitch(t, fresh)
				other.Set("ep", p.Program(now))
				other.InitialSyncDone()
				settle(t, other)
				if got, want := changed.text(), fresh.text(); got != want || got == before {
					t.Errorf("after the change:\n%s\nwant:\n%s\nbefore:\n%s", got, want, before)
				}
			})
		}
	}
}
