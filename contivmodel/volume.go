package contivmodel

// Volume and VolumeProfile are part of the API for compatibility: they can be listed,
// but none can be created.

// Volume is a volume of a tenant.
type Volume struct {
	Key           string         `json:"key"`
	DatastoreType string         `json:"datastoreType,omitempty"`
	MountPoint    string         `json:"mountPoint,omitempty"`
	PoolName      string         `json:"poolName,omitempty"`
	Size          string         `json:"size,omitempty"`
	TenantName    string         `json:"tenantName,omitempty"`
	VolumeName    string         `json:"volumeName,omitempty"`
	LinkSets      VolumeLinkSets `json:"link-sets"`
	Links         VolumeLinks    `json:"links"`
}

// VolumeLinkSets are the users of a volume.
type VolumeLinkSets struct {
	ServiceInstances LinkSet `json:"ServiceInstances,omitempty"`
}

// VolumeLinks are the objects a volume stands on.
type VolumeLinks struct {
	Tenant Link `json:"Tenant"`
}

// VolumeProfile is a template of volumes.
type VolumeProfile struct {
	Key               string                `json:"key"`
	DatastoreType     string                `json:"datastoreType,omitempty"`
	MountPoint        string                `json:"mountPoint,omitempty"`
	PoolName          string                `json:"poolName,omitempty"`
	Size              string                `json:"size,omitempty"`
	TenantName        string                `json:"tenantName,omitempty"`
	VolumeProfileName string                `json:"volumeProfileName,omitempty"`
	LinkSets          VolumeProfileLinkSets `json:"link-sets"`
	Links             VolumeLinks           `json:"links"`
}

// VolumeProfileLinkSets are the users of a volume profile.
type VolumeProfileLinkSets struct {
	Services LinkSet `json:"Services,omitempty"`
}

// VolumeKind describes volumes; the key is tenantName:volumeName.
func VolumeKind() Kind[Volume, NoOper] {
	return Kind[Volume, NoOper]{
		Type: "volume", Collection: "volumes", names: []string{tenantName, "volumeName"}, reserved: true,
		key:    func(v *Volume) *string { return &v.Key },
		unlink: func(v *Volume) { v.LinkSets, v.Links = VolumeLinkSets{}, VolumeLinks{} },
		members: []member[Volume]{
			{Field: Field{Name: tenantName}, text: func(v *Volume) *string { return &v.TenantName }},
			{Field: Field{Name: "volumeName"}, text: func(v *Volume) *string { return &v.VolumeName }},
		},
	}
}

// VolumeProfileKind describes volume profiles; the key is
// tenantName:volumeProfileName.
func VolumeProfileKind() Kind[VolumeProfile, NoOper] {
	return Kind[VolumeProfile, NoOper]{
		Type: "volumeProfile", Collection: "volumeProfiles", names: []string{tenantName, "volumeProfileName"}, reserved: true,
		key:    func(v *VolumeProfile) *string { return &v.Key },
		unlink: func(v *VolumeProfile) { v.LinkSets, v.Links = VolumeProfileLinkSets{}, VolumeLinks{} },
		members: []member[VolumeProfile]{
			{Field: Field{Name: tenantName}, text: func(v *VolumeProfile) *string { return &v.TenantName }},
			{Field: Field{Name: "volumeProfileName"}, text: func(v *VolumeProfile) *string { return &v.VolumeProfileName }},
		},
	}
}
