package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// register is one of the 32-bit registers that a packet carries from table to table. All
// are zero in table 0.
type register uint8

// The registers. registerInfos says what their bits mean.
const (
	regOrigin   register = 0
	regSegment  register = 1
	regVRF      register = 2
	regSrcGrp   register = 3
	regDstGrp   register = 4
	regDstNet   register = 5
	regZone     register = 6
	regOutPort  register = 7
	regScratch  register = 8
	regMark     register = 9
	regNextHop  register = 10
	regService  register = 11
	regVIP      register = 12 // to 15
	numRegister register = 16

	regProvider = regScratch
	regSet      = regScratch
)

// registerInfo says what the low bits of a register mean.
type registerInfo struct {
	name    string
	bits    int
	meaning string
}

var registerInfos = [numRegister]registerInfo{
	regOrigin:  {"origin", 3, "where the packet comes from: 0 an endpoint of this host, 1 a tunnel, 2 an uplink, 3 the host itself, 4 a client for whom the host forwards"},
	regSegment: {"segment", 24, "network the packet comes from: its VNI or VLAN"},
	regVRF:     {"vrf", 16, "VRF, which is the tenant's number on this host"},
	regSrcGrp:  {"source group", 32, "endpoint group of the sender"},
	regDstGrp:  {"destination group", 32, "endpoint group of the receiver"},
	regDstNet:  {"destination network", 24, "network the packet goes to: its VNI or VLAN"},
	regZone:    {"zone", 16, "conntrack zone of the VRF's services; 1 once a new connection has been counted without one"},
	regOutPort: {"output port", 32, "OpenFlow port the packet leaves by"},
	regScratch: {"scratch", 32, "between two tables of one feature: slot or number of a provider, number of a rule set, reason of a rejection, flags of an advertisement"},
	regMark:    {"mark", 32, "mark of connections that the present rules admit: generation of the rules (31 bits), then 1 for denied"},
	regNextHop: {"next hop", 32, "receiver on the link of the uplinks: 0 none, 1 the endpoint's host, else a set of next hops"},
	regService: {"frontend", 30, "number of the service's frontend"},
	regVIP:     {"service address", 32, "address of the service that was asked for; registers 12 to 15 for IPv6"},
	13:         {"service address", 32, "IPv6"},
	14:         {"service address", 32, "IPv6"},
	15:         {"service address", 32, "IPv6"},
}

// Values of regOrigin.
const (
	originLocal  = 0 // an endpoint of this host
	originTunnel = 1
	originUplink = 2
	originHost   = 3 // the host itself, through its port
	originPassed = 4 // a client for whom the host forwards, through the host's port
)

func (r register) String() string { return registerInfos[r].name }

// field is the register as a field of matches and actions.
func (r register) field() of.Field { return of.FieldReg(int(r)) }

// is is the register with a value, to be matched or set.
func (r register) is(v uint32) of.FieldValue { return r.field().Is(uint64(v)) }

// all are all bits of the register, bits those from low to high.
func (r register) all() of.Subfield { return r.field().All() }

func (r register) bits(low, high int) of.Subfield { return r.field().Range(low, high) }
