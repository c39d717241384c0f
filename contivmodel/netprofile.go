package contivmodel

// Netprofile is a limit of rate and a traffic class that groups share.
type Netprofile struct {
	Key         string             `json:"key"`
	DSCP        int                `json:"DSCP,omitempty"`      // 0–63; 0 leaves packets as they are
	Bandwidth   string             `json:"bandwidth,omitempty"` // "10 Gbps", "6gb", "4m"
	Burst       int                `json:"burst,omitempty"`     // kilobytes, 2–10486; 0 = unset
	ProfileName string             `json:"profileName,omitempty"`
	TenantName  string             `json:"tenantName,omitempty"`
	LinkSets    NetprofileLinkSets `json:"link-sets"`
	Links       NetprofileLinks    `json:"links"`
}

// NetprofileLinkSets are the objects that use a net profile.
type NetprofileLinkSets struct {
	EndpointGroups LinkSet `json:"EndpointGroups,omitempty"`
}

// NetprofileLinks are the objects a net profile stands on.
type NetprofileLinks struct {
	Tenant Link `json:"Tenant"`
}

// NetprofileType names the kind in links, store keys and errors.
const NetprofileType = "netprofile"

// NetprofileKind describes net profiles; the key is tenantName:profileName.
func NetprofileKind() Kind[Netprofile, NoOper] {
	return Kind[Netprofile, NoOper]{
		Type: NetprofileType, Collection: "netprofiles", names: []string{tenantName, "profileName"},
		key:    func(p *Netprofile) *string { return &p.Key },
		unlink: func(p *Netprofile) { p.LinkSets, p.Links = NetprofileLinkSets{}, NetprofileLinks{} },
		members: []member[Netprofile]{
			{
				Field:  Field{Name: "DSCP", Text: "traffic class; 0 leaves packets unchanged", High: 63},
				number: func(p *Netprofile) *int { return &p.DSCP },
			},
			{
				Field: Field{Name: "bandwidth", Text: "number and unit, as 10mbps", MaxBytes: 64},
				text:  func(p *Netprofile) *string { return &p.Bandwidth }, valid: IsBandwidth,
			},
			{
				Field:  Field{Name: "burst", Text: "kilobytes, at least 2; 0 = unset", High: 10486},
				number: func(p *Netprofile) *int { return &p.Burst },
			},
			name(member[Netprofile]{
				Field: Field{Name: "profileName", Text: "the net profile's name"},
				text:  func(p *Netprofile) *string { return &p.ProfileName },
			}, 64),
			{
				Field: Field{Name: tenantName, Text: "the tenant it belongs to; must exist", MaxBytes: 64, Refers: TenantType},
				text:  func(p *Netprofile) *string { return &p.TenantName },
				link:  func(p *Netprofile) *Link { return &p.Links.Tenant },
			},
		},
	}
}

// IsBandwidth reports whether s is a positive number without leading zeros, at most
// one blank, and a unit: k, m or g in either case, alone or followed by "bps", or by
// "b" where that is no kilobyte (kB).
func IsBandwidth(s string) bool {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	if n == 0 || s[0] == '0' {
		return false
	}
	unit := s[n:]
	if unit != "" && unit[0] == ' ' {
		unit = unit[1:]
	}
	if unit == "" {
		return false
	}
	switch unit[0] {
	case 'k', 'm', 'g', 'K', 'M', 'G':
		return unit[1:] == "" || unit[1:] == "bps" || unit[1:] == "b"
	}
	return false
}
