package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// macSwitch leaves forwarding to the bridge's own learning; VLANs keep networks apart
// by the tags of the ports.
type macSwitch struct{ noRows }

func (macSwitch) id() uint8       { return featureSwitch }
func (macSwitch) tables() []table { return []table{tableSwitch} }

func (macSwitch) fixed(*Pipeline) []row {
	return []row{{tableSwitch, prioNormal, of.NewMatch(), apply(of.NewActions().Normal())}}
}
