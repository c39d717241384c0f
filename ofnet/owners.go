package ofnet

// featureNames name the features by the numbers in cookies.
var featureNames = map[uint8]string{
	0: "miss", featureClassify: "classify", featureNeighbour: "neighbour", featureARP: "arp", featureND: "nd", featureRoute: "route",
	featureSwitch: "switch", featureSource: "source", featurePolicy: "policy", featureDNS: "dns", featureUplink: "uplink",
	featureExternal: "external", featureService: "service", featureReject: "reject", featureEndpointPolicy: "endpoint-policy", featureTunnel: "tunnel",
	featureReach: "reach", featureFrame: "frame", featureHost: "host", featureFair: "fair",
	featureCountOut: "service", featureCountIn: "service", featureAffinity: "service", featureMixed: "service",
}

// FeatureOf names the feature that a flow's cookie tells of; "miss" for the end of a
// table, "" for a flow that is not ours.
func FeatureOf(cookie uint64) string { return featureNames[cookieFeature(cookie)] }

// Owners tells who wants the flows with the given cookies. A flow that nobody here
// wants, or that the switch has learned, is left out.
func (s *Switch) Owners(cookies []uint64) map[uint64]string {
	asked := make(map[uint64]uint64, len(cookies)) // by what does not depend on the round
	for _, c := range cookies {
		asked[c&cookieIdentity] = c
	}
	out := make(map[uint64]string, len(cookies))
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, p := range s.owners {
		for _, f := range p.Flows {
			if c, ok := asked[f.Cookie&cookieIdentity]; ok {
				out[c] = owner
			}
		}
	}
	return out
}
