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

// AciGwType names the kind in links, store keys and errors.
const AciGwType = "aciGw"

// AciGwKind describes the gateway; the key is "aciGw".
func AciGwKind() Kind[AciGw, AciGwOper] {
	yesNo := []string{"yes", "no"}
	return Kind[AciGw, AciGwOper]{
		Type: AciGwType, Collection: "aciGws", names: []string{"name"},
		key:    func(g *AciGw) *string { return &g.Key },
		unlink: func(*AciGw) {},
		members: []member[AciGw]{
			{
				Field: Field{Name: "enforcePolicies", Text: "whether the fabric enforces policies", Required: true, Values: yesNo, Initial: "yes"},
				text:  func(g *AciGw) *string { return &g.EnforcePolicies },
			},
			{
				Field: Field{Name: "includeCommonTenant", Text: "whether tenant common is used, too", Required: true, Values: yesNo, Initial: "no"},
				text:  func(g *AciGw) *string { return &g.IncludeCommonTenant },
			},
			{
				Field: Field{Name: "name", Text: "the object's name", Required: true, Values: []string{AciGwName}, Initial: AciGwName},
				text:  func(g *AciGw) *string { return &g.Name },
			},
			{
				Field: Field{Name: "nodeBindings", Text: "topology/pod-N/node-N, separated by commas", MaxBytes: 2048},
				text:  func(g *AciGw) *string { return &g.NodeBindings },
				valid: func(s string) bool { return eachOf(s, isNodeBinding) },
			},
			{
				Field: Field{Name: "pathBindings", Text: "topology/pod-N/paths-N/pathep-[ethM/M], separated by commas", MaxBytes: 2048},
				text:  func(g *AciGw) *string { return &g.PathBindings },
				valid: func(s string) bool { return eachOf(s, isPathBinding) },
			},
			name(member[AciGw]{
				Field: Field{Name: "physicalDomain", Text: "the physical domain"},
				text:  func(g *AciGw) *string { return &g.PhysicalDomain },
			}, 128),
		},
	}
}

// eachOf reports whether every item of the comma list s is right.
func eachOf(s string, right func(string) bool) bool {
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
