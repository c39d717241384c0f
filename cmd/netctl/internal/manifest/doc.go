// Package manifest is objects in files: it reads them, compares them with what a
// netmaster has, makes what is missing, and writes what there is.
//
// A file holds documents in YAML 1.2, of which JSON is a part. A document is an object
// or a list of objects. An object has the members of the REST API and its kind:
//
//	kind: network
//	tenantName: default
//	networkName: web
//	encap: vxlan
//	subnet: 10.1.0.0/24
//	---
//	kind: rule
//	tenantName: default
//	policyName: web-only
//	ruleId: 1
//	…
//
// Texts need no quotes: where a text is expected, 1 and yes are texts. What an object
// does not say is empty or has its default, so that a file says all of an object; only
// settings of the cluster that may be left empty stay as they are. Keys and links are
// ignored, so that what lists print as JSON can be used.
//
// The order of objects in files means nothing: they are made in the order of kinds, in
// which each needs only what comes before.
package manifest
