package ovsd

import (
	"github.com/contiv/netplugin/drivers"
)

// Apply implements drivers.Driver.
func (d *Driver) Apply(o drivers.Object) {
	switch o := o.(type) {
	case drivers.Global:
		d.setGlobal(o)
	case drivers.Network:
		d.setNetwork(o)
	case drivers.Endpoint:
		d.setEndpoint(o)
	case drivers.Rule:
		d.setRule(o)
	case drivers.Service:
		d.setService(o)
	case drivers.PolicyRuleSet:
		d.setPolicyRuleSet(o)
	case drivers.EndpointPolicy:
		d.setEndpointPolicy(o)
	case drivers.Speaker:
		d.setSpeaker(&o.Config)
	case drivers.ClusterReach:
		d.reachCluster(o.Services)
	}
}

// Delete implements drivers.Driver. The settings that there is one of stay.
func (d *Driver) Delete(k drivers.Kind, id string) {
	switch k {
	case drivers.KindNetwork:
		d.removeNetwork(id)
	case drivers.KindEndpoint:
		d.removeEndpoint(id)
	case drivers.KindRule:
		d.removeRule(id)
	case drivers.KindService:
		d.removeService(id)
	case drivers.KindPolicyRuleSet:
		d.removePolicyRuleSet(id)
	case drivers.KindEndpointPolicy:
		d.removeEndpointPolicy(id)
	case drivers.KindSpeaker:
		d.setSpeaker(nil)
	}
}

// holdStale keeps what predecessors have declared of sources that will declare it again.
func (d *Driver) holdStale() {
	for _, s := range d.sides {
		for _, source := range d.cfg.Sources {
			switch source {
			case drivers.SourceServices:
				s.sw.HoldStaleServices()
			case drivers.SourcePolicies:
				s.sw.HoldStaleEndpointPolicies()
			}
		}
	}
}

// Synced implements drivers.Driver.
func (d *Driver) Synced(source drivers.Source) {
	if source == drivers.SourceStore {
		d.storeSynced()
		return
	}
	for _, s := range d.sides {
		switch source {
		case drivers.SourceServices:
			s.sw.SweepStaleServices()
		case drivers.SourcePolicies:
			s.sw.SweepStaleEndpointPolicies()
		}
	}
}
