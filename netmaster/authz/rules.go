package authz

import (
	"net/url"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/state/traceapi"
)

// need is what a rule asks of an identity.
type need int

// What a rule can ask for. Handlers filter what they answer to those who are only
// identified.
const (
	nothing      need = iota // also those nobody has identified; the handler checks by itself
	known                    // to be known, with or without a role
	identified               // to have a role, whichever
	everything               // to see all tenants
	metrics                  // to see all tenants, or to be a collector of metrics
	readTenant               // to see the tenant that the key names
	changeTenant             // to change the tenant that the key names, and the body
	agent                    // to be an agent; the handler checks that what it asks for is its host's
	ownHost                  // to be the agent of the host that the path names
	swarmNetwork             // as changeTenant, or to be an agent that makes the network of a swarm
	adminOnly                // to be an admin
)

// rule says what requests need.
type rule struct {
	methods string // separated by spaces
	// path is the segments, of which {name} stands for any one and {rest...}, at the end,
	// for any number. A slash may follow.
	path string
	need need
	kind contivmodel.AnyKind // of the objects; nil: they are none

	verbs, pattern []string // methods and path, in parts
}

// Paths whose requests every part of a cluster needs before it has an identity.
const (
	authProxy = "/api/v1/auth_proxy/"
	security  = "/api/v1/security/"
	// PathCanI answers what an identity may do; see Question.
	PathCanI = security + "can-i"
	// PathAudit shows the audit log of this netmaster.
	PathAudit = security + "audit"
	objects   = "/api/v1/"
	inspect   = objects + "inspect/"
)

const reads, writes = "GET", "POST PUT DELETE"

// fixed is the rules for what is not an object.
func fixed() []rule {
	return []rule{
		{reads, "/healthz", nothing, nil, nil, nil},
		{reads, "/readyz", nothing, nil, nil, nil},
		{reads, "/version", nothing, nil, nil, nil},
		{reads, "/", nothing, nil, nil, nil},
		{reads, "/ui/{rest...}", nothing, nil, nil, nil}, // files; they ask the API like everybody
		{"GET POST PUT PATCH DELETE", authProxy + "{rest...}", nothing, nil, nil, nil},
		{"POST", security + "join", nothing, nil, nil, nil},
		{"POST", security + "renew", nothing, nil, nil, nil},
		{reads, security + "roots", nothing, nil, nil, nil},
		{"POST", security + "masters/join", nothing, nil, nil, nil},
		{"POST", PathCanI, known, nil, nil, nil},
		{reads, PathAudit, adminOnly, nil, nil, nil},
		{"GET POST PUT DELETE", security + "{rest...}", adminOnly, nil, nil, nil},

		{reads, "/info", everything, nil, nil, nil},
		{reads, "/metrics", metrics, nil, nil, nil},
		{reads, "/alive", adminOnly, nil, nil, nil}, // of netmasters for each other
		{reads, objects + "watch", identified, nil, nil, nil},
		{reads, objects + "changes", identified, nil, nil, nil},
		{reads, objects + "openapi.json", identified, nil, nil, nil},
		{reads, "/docs", identified, nil, nil, nil},
		{reads, "/docs/{asset}", identified, nil, nil, nil},
		{reads, inspect + contivmodel.EndpointCollection + "/{key}", identified, nil, nil, nil},
		{reads, traceapi.PathMaster, identified, nil, nil, nil},
		{reads, flowapi.PathMaster, identified, nil, nil, nil},
		{reads, flowapi.PathHits, identified, nil, nil, nil},
		{reads, flowapi.PathExplain, identified, nil, nil, nil},
		{"POST", flowapi.PathPreview, identified, nil, nil, nil},
		{reads, clusterapi.PathApplied, identified, nil, nil, nil},
		{reads, clusterapi.PathCluster, everything, nil, nil, nil},
		{reads, doctorapi.PathMaster, everything, nil, nil, nil},
		{reads, doctorapi.PathSupport, adminOnly, nil, nil, nil},
		{"GET POST", clusterapi.PathGarbage, adminOnly, nil, nil, nil},
		{reads, "/debug/ofnet", everything, nil, nil, nil},
		{"DELETE", "/debug/epcleanup/tenant/{tenant}/{category}/{key}", adminOnly, nil, nil, nil},
		{reads, "/services", identified, nil, nil, nil},
		{reads, "/service/{key}", identified, nil, nil, nil},

		{"POST", masterapi.PathAllocAddress, agent, nil, nil, nil},
		{"POST", masterapi.PathReleaseAddress, agent, nil, nil, nil},
		{"POST", masterapi.PathCreateEndpoint, agent, nil, nil, nil},
		{"POST", masterapi.PathDeleteEndpoint, agent, nil, nil, nil},
		{"POST", masterapi.PathUpdateEndpoint, agent, nil, nil, nil},
		{"GET POST PUT DELETE", "/plugin/host/{label}/{rest...}", ownHost, nil, nil, nil},
	}
}

// exceptions are the objects that are judged otherwise than their kind; they come first.
func exceptions() []rule {
	global := contivmodel.GlobalKind()
	return []rule{
		// Everybody needs to know the forwarding mode.
		{reads, objects + global.Collection + "/" + contivmodel.GlobalName, identified, global, nil, nil},
		{reads, inspect + global.Collection + "/" + contivmodel.GlobalName, identified, global, nil, nil},
	}
}

// ofKind is the rules for the objects of a kind.
func ofKind(k contivmodel.AnyKind) []rule {
	d := k.Description()
	list, read, change := everything, everything, adminOnly
	switch {
	case d.Type == contivmodel.TenantType:
		list, read = identified, readTenant
	case d.Type == contivmodel.NetworkType:
		list, read, change = identified, readTenant, swarmNetwork
	case inTenant(d):
		list, read, change = identified, readTenant, changeTenant
	}
	root, one := objects+d.Collection, "/{key}"
	return []rule{
		{reads, root, list, k, nil, nil},
		{reads, root + one, read, k, nil, nil},
		{writes, root + one, change, k, nil, nil},
		{reads, inspect + d.Collection + one, read, k, nil, nil},
	}
}

// inTenant reports whether the keys of a kind begin with a tenant.
func inTenant(d contivmodel.Description) bool { return d.Names[0] == "tenantName" }

// table is all rules, those that decide first at the front.
func table() []rule {
	rules := slices.Concat(fixed(), exceptions())
	for _, k := range contivmodel.Kinds() {
		rules = append(rules, ofKind(k)...)
	}
	for i := range rules {
		r := &rules[i]
		r.verbs, r.pattern = strings.Fields(r.methods), strings.Split(strings.Trim(r.path, "/"), "/")
	}
	return rules
}

// match reports whether the rule is for a request, and what its path has for the variable
// of the rule that comes last. segments are decoded, without one for a slash at the end.
func (r rule) match(method string, segments []string) (value string, ok bool) {
	if !slices.Contains(r.verbs, method) {
		return "", false
	}
	for i, p := range r.pattern {
		switch {
		case p == "{rest...}":
			return value, true
		case i >= len(segments):
			return "", false
		case strings.HasPrefix(p, "{") && segments[i] != "":
			value = segments[i]
		case p != segments[i]:
			return "", false
		}
	}
	return value, len(r.pattern) == len(segments)
}

// split returns the decoded segments of a path as it was sent. It returns false for one
// that cannot be decoded.
func split(escaped string) ([]string, bool) {
	segments := strings.Split(strings.TrimSuffix(strings.TrimPrefix(escaped, "/"), "/"), "/")
	for i, s := range segments {
		text, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		segments[i] = text
	}
	return segments, true
}
