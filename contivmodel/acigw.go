package contivmodel

import "strings"

// AciGw is how the gateway to an ACI fabric is to work; there is one.
type AciGw struct {
	Key                 string `json:"key"`
	EnforcePolicies     string `json:"enforcePolicies,omitempty"`     // yes | no
	IncludeCommonTenant string `json:"includeCommonTenant,omitempty"` // yes | no
	Name                string `json:"name,omitempty"`                // always "aciGw"
	NodeBindings        string `json:"nodeBindings,omitempty"`        // topology/pod-N/node-N,…
	PathBindings        string `json:"pathBindings,omitempty"`        // topology/pod-N/paths-N/pathep-[ethM/M],…
	PhysicalDomain      string `json:"physicalDomain,omitempty"`
}

// AciGwOper is what makes use of the gateway.
type AciGwOper struct {
	NumAppProfiles int `json:"numAppProfiles,omitempty"`
}

// AciGwName is the name of the one gateway object.
const AciGwName = "aciGw"

// AciGwKind describes the gateway; the key is "aciGw".
func AciGwKind() Kind[AciGw, AciGwOper] {
	return Kind[AciGw, AciGwOper]{
		Type:       "aciGw",
		Collection: "aciGws",
		key:        func(g *AciGw) *string { return &g.Key },
		ident:      func(g *AciGw) string { return g.Name },
		unlink:     func(*AciGw) {},
		check: func(g *AciGw, c *checker) {
			c.oneOf("enforcePolicies", g.EnforcePolicies, "yes", "no")
			c.oneOf("includeCommonTenant", g.IncludeCommonTenant, "yes", "no")
			c.oneOf("name", g.Name, AciGwName)
			c.limit("nodeBindings", g.NodeBindings, 2048)
			c.format("nodeBindings", eachOf(g.NodeBindings, isNodeBinding))
			c.limit("pathBindings", g.PathBindings, 2048)
			c.format("pathBindings", eachOf(g.PathBindings, isPathBinding))
			c.name("physicalDomain", g.PhysicalDomain, 128)
		},
	}
}

// eachOf reports whether s is empty or every item of the comma list s is right.
func eachOf(s string, right func(string) bool) bool {
	if s == "" {
		return true
	}
	for item := range strings.SplitSeq(s, ",") {
		if !right(item) {
			return false
		}
	}
	return true
}

// isNodeBinding accepts topology/pod-N/node-N, N of 1–4 digits.
func isNodeBinding(s string) bool {
	parts := strings.Split(s, "/")
	return len(parts) == 3 && parts[0] == "topology" && numbered(parts[1], "pod-", 4) && numbered(parts[2], "node-", 4)
}

// isPathBinding accepts topology/pod-N/paths-N/pathep-[ethM/M], N of 1–4 digits, M of
// 1–2.
func isPathBinding(s string) bool {
	parts := strings.Split(s, "/")
	if len(parts) != 5 || parts[0] != "topology" || !numbered(parts[1], "pod-", 4) || !numbered(parts[2], "paths-", 4) {
		return false
	}
	port, ok := strings.CutSuffix(parts[4], "]")
	return ok && numbered(parts[3], "pathep-[eth", 2) && numbered(port, "", 2)
}

// numbered reports whether s is prefix and a decimal of 1 to digits digits.
func numbered(s, prefix string, digits int) bool {
	n, ok := strings.CutPrefix(s, prefix)
	_, fine := decimal(n, digits)
	return ok && fine
}
