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

// NetprofileKind describes net profiles; the key is tenantName:profileName.
func NetprofileKind() Kind[Netprofile, NoOper] {
	return Kind[Netprofile, NoOper]{
		Type:       "netprofile",
		Collection: "netprofiles",
		key:        func(p *Netprofile) *string { return &p.Key },
		ident:      func(p *Netprofile) string { return p.TenantName + ":" + p.ProfileName },
		unlink:     func(p *Netprofile) { p.LinkSets, p.Links = NetprofileLinkSets{}, NetprofileLinks{} },
		check: func(p *Netprofile, c *checker) {
			c.bound("DSCP", p.DSCP, 0, 63)
			c.limit("bandwidth", p.Bandwidth, 64)
			c.format("bandwidth", p.Bandwidth == "" || IsBandwidth(p.Bandwidth))
			c.bound("burst", p.Burst, 0, 10486)
			c.name("profileName", p.ProfileName, 64)
			c.limit("tenantName", p.TenantName, 64)
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
