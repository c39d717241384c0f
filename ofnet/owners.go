package ofnet

// FeatureOf is the name of the feature in a flow's cookie: "miss" for the end of a table,
// "" for a flow that is not ours.
func FeatureOf(cookie uint64) string {
	if n := int(cookieFeature(cookie)); n < len(featureNames) {
		return featureNames[n]
	}
	return ""
}

// Owners maps cookies to the owners of their flows, without flows that have no owner and
// those that the switch has learned.
func (s *Switch) Owners(cookies []uint64) map[uint64]string {
	asked := make(map[uint64]uint64, len(cookies)) // by the part that does not depend on the round
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
