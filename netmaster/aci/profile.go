// Package aci tells the gateway of an ACI fabric about app profiles. The gateway turns a
// profile into the fabric's own objects: an endpoint group per group, a contract per
// policy and peer. It can be told, but not asked, so what it was told last is kept in the
// store and a new leader goes on from there.
package aci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/contiv/netplugin/contivmodel"
)

// APIVersion is the version of the gateway's API that profiles are written in.
const APIVersion = "v1.2"

// Profile is one app profile as the gateway expects it.
type Profile struct {
	Version   string             `json:"aci-gw-api-version"`
	Config    *contivmodel.AciGw `json:"gw-config,omitempty"` // nil: the gateway goes by its own settings
	Tenant    string             `json:"tenant"`
	Name      string             `json:"app-prof"`
	Contracts []Contract         `json:"contract-defs,omitempty"`
	Groups    []Group            `json:"epgs,omitempty"`

	// Numbers are the cluster's numbers of the groups, which the gateway does not know.
	Numbers []int `json:"-"`
}

// Contract is what one group may use of another.
type Contract struct {
	Name    string   `json:"name"`
	Filters []Filter `json:"filter-info,omitempty"`
}

// Filter is one kind of traffic a contract lets through. Port is a decimal, "0" for any.
type Filter struct {
	Protocol string `json:"protocol,omitempty"`
	Port     string `json:"servport"`
}

// Group is a group of endpoints with its VLAN and what it provides and consumes.
type Group struct {
	Name    string `json:"name"`
	Network string `json:"nw-name"`
	Gateway string `json:"gw-cidr,omitempty"` // ADDRESS/LENGTH
	VLAN    string `json:"vlan-tag"`          // decimal
	Links   []Link `json:"contract-links,omitempty"`
}

// Link ties a group to a contract: one of the profile by name, one of the fabric by its
// distinguished name.
type Link struct {
	Kind     LinkKind     `json:"link-kind"`
	Contract string       `json:"contract-name,omitempty"`
	DN       string       `json:"contract-dn,omitempty"`
	Origin   ContractKind `json:"contract-kind"`
}

// LinkKind says what a group does with a contract.
type LinkKind string

// The kinds of link.
const (
	Provide LinkKind = "PROVIDE"
	Consume LinkKind = "CONSUME"
)

// ContractKind says where a contract is defined.
type ContractKind string

// The kinds of contract.
const (
	Internal ContractKind = "INTERNAL"
	External ContractKind = "EXTERNAL"
)

// Same reports whether the gateway would be told the same of both.
func (p Profile) Same(q Profile) bool { return p.digest() == q.digest() }

// digest tells whether the gateway would be told anything new.
func (p Profile) digest() string {
	text, err := json.Marshal(p)
	if err != nil { // strings and numbers only
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
