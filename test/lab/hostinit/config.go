package hostinit

import "net/netip"

// Config is what an init needs to know of its host.
type Config struct {
	Hostname string `json:"hostname"`
	// Overlays are directories whose content the host sees, and may change for
	// itself in memory.
	Overlays []string `json:"overlays,omitempty"`
	// Binds put directories of the machine over directories of the host.
	Binds []Bind `json:"binds,omitempty"`
	// Files are written after everything is mounted: path → content.
	Files map[string]string `json:"files,omitempty"`
	// Sysctls are set in order; paths below /proc/sys. One that does not exist in
	// this kernel is passed over.
	Sysctls []Sysctl `json:"sysctls,omitempty"`
	// Addresses of links that come and go, such as the local port of a switch
	// bridge: whenever a link of that name appears it is set up and given the address.
	Addresses map[string]netip.Prefix `json:"addresses,omitempty"`
}

// Bind is a directory Source of the machine seen as Target in the host. Target is
// made if it is not there.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Sysctl is a kernel setting, for example net/ipv4/ip_forward.
type Sysctl struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Paths inside a host.
const (
	runDir     = "/run/contiv-lab"
	SocketPath = runDir + "/init.sock"
	NetnsDir   = "/run/netns"
)

// OVSDir holds the programs of Open vSwitch of a host that does not use the machine's.
const OVSDir = "/opt/ovs/bin"

// Path is where a host looks for programs.
const Path = OVSDir + ":/opt/contiv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
