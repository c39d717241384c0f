package ofnet

import (
	"hash/fnv"

	of "github.com/contiv/netplugin/libopenflow"
)

// Priorities. A table's miss has 0.
const (
	prioRule     = 10 // plus three times the rule's priority, plus 1 for a rejection, 2 for a silent denial: up to 312
	prioMiss     = 0
	prioFlood    = 10 // matches what prioNormal does not
	prioGeneral  = 50 // less specific than prioNormal
	prioNormal   = 100
	prioSpecific = 110    // more specific than prioNormal
	prioDrop     = 200    // malformed, never to be forwarded
	prioOutside  = 0x7fff // minus the number of the VRF: endpoints as seen from outside
)

// Numbers that features put into cookies.
const (
	featureMiss = iota
	featureClassify
	featureNeighbor
	featureARP
	featureND
	featureRoute
	featureSwitch
	featureSource
	featurePolicy
	featureDNS
	featureUplink
	featureExternal
	featureService
	featureReject
	featureCountOut // learned: packets to a provider
	featureCountIn  // learned: packets from a provider
	featureAffinity // learned: the provider that a client gets again
	featureHost
	featureEndpointPolicy
	featureFair
	featureMixed // learned: a client has reached a provider through a service
	featureTunnel
	featureReach
	featureFrame
	featureFlowLog
)

// featureNames are the names of features in debug output.
var featureNames = [...]string{
	featureMiss:           "miss",
	featureClassify:       "classify",
	featureNeighbor:       "neighbor",
	featureARP:            "arp",
	featureND:             "nd",
	featureRoute:          "route",
	featureSwitch:         "switch",
	featureSource:         "source",
	featurePolicy:         "policy",
	featureDNS:            "dns",
	featureUplink:         "uplink",
	featureExternal:       "external",
	featureService:        "service",
	featureReject:         "reject",
	featureCountOut:       "service",
	featureCountIn:        "service",
	featureAffinity:       "service",
	featureHost:           "host",
	featureEndpointPolicy: "endpoint-policy",
	featureFair:           "fair",
	featureMixed:          "service",
	featureTunnel:         "tunnel",
	featureReach:          "reach",
	featureFrame:          "frame",
	featureFlowLog:        "flow-log",
}

// A cookie is round (16 bits)
//
// feature (8)
//
// 7 zero bits
//
// learned (1)
//
// object (32). The round counts the starts of the agent; the object is a hash of its name,
// which identifies the owner of a flow in a dump. Flows are compared without the round, so
// that a new agent leaves the flows of its predecessor alone.
const cookieRoundShift, cookieFeatureShift = 48, 40

const cookieIdentity = 1<<cookieRoundShift - 1

// cookieLearned marks flows that the switch learns itself; no object declares them.
const cookieLearned = 1 << 32

func cookieFeature(c uint64) uint8 { return uint8(c >> cookieFeatureShift) }

func cookie(round uint16, feature uint8, object string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(object))
	return uint64(round)<<cookieRoundShift | uint64(feature)<<cookieFeatureShift | uint64(h.Sum32())
}

// multicastBit is set in group addresses only (IEEE 802 I/G bit), which cannot be sources.
var multicastBit = MAC{0x01}

// Flags of a neighbor advertisement (RFC 4861 section 4.4), as in nd_reserved.
const (
	ndSolicited = 0x40000000
	ndOverride  = 0x20000000
	ndRouter    = 0x80000000
)

// Protocol numbers: ARP operations (RFC 826), ICMP types (RFC 792, RFC 4443, RFC 4861) and
// the neighbor discovery option with the target's address.
const (
	arpRequest            = 1
	arpReply              = 2
	icmpv4EchoReply       = 0
	icmpv4Redirect        = 5
	icmpv4EchoRequest     = 8
	icmpv4RouterAdvert    = 9 // RFC 1256
	icmpv6EchoRequest     = 128
	icmpv6EchoReply       = 129
	icmpv6RouterSolicit   = 133
	icmpv6RouterAdvert    = 134
	icmpv6NeighborSolicit = 135
	icmpv6NeighborAdvert  = 136
	icmpv6Redirect        = 137
	icmpv6ListenerQuery   = 130 // RFC 2710 section 3
	icmpv6ListenerReport1 = 131
	icmpv6ListenerDone    = 132
	icmpv6ListenerReport  = 143 // RFC 3810 section 5.2
	icmpv6RouterDiscovery = 151 // multicast router advertisement, RFC 4286
	ndOptTargetLinkAddr   = 2
	ethTypeARP            = 0x0806
)

func goTo(t uint8) of.Instructions { return of.NewInstructions().Goto(t) }

func applyGoto(a of.Actions, t uint8) of.Instructions {
	return of.NewInstructions().Apply(a).Goto(t)
}

func apply(a of.Actions) of.Instructions { return of.NewInstructions().Apply(a) }

// drop has no instructions.
const drop = of.Instructions("")
