package libopenflow

import (
	"encoding/binary"
	"fmt"
)

// Error is what the switch says when it refuses a message (OpenFlow 1.3 §7.4.4). It
// is a Go error too; its text begins with the standard's name of type and code.
type Error struct {
	ErrType      uint16 // as in the standard; 0xffff: see Experimenter
	Code         uint16 // for an experimenter error: the experimenter's error type
	Experimenter uint32
	Data         []byte // beginning of the refused message, 64 bytes or more if it had them
}

// Type returns TypeError.
func (*Error) Type() MsgType { return TypeError }

const errExperimenter = 0xffff

func (m *Error) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, m.ErrType)
	b = binary.BigEndian.AppendUint16(b, m.Code)
	if m.ErrType == errExperimenter {
		b = binary.BigEndian.AppendUint32(b, m.Experimenter)
	}
	return append(b, m.Data...), nil
}

func decodeError(r *reader) *Error {
	m := &Error{ErrType: r.u16(), Code: r.u16()}
	if m.ErrType == errExperimenter {
		m.Experimenter = r.u32()
	}
	m.Data = r.rest()
	return m
}

// Name returns the standard's name of the code, such as "OFPBMC_BAD_PREREQ", or the
// numbers of one this package does not know.
func (m *Error) Name() string {
	if m.ErrType == errExperimenter {
		if n, ok := experimenterErrors[[2]uint32{m.Experimenter, uint32(m.Code)}]; ok {
			return n
		}
		return fmt.Sprintf("experimenter %#x error %d", m.Experimenter, m.Code)
	}
	if int(m.ErrType) < len(errorNames) {
		if t := errorNames[m.ErrType]; int(m.Code) < len(t) {
			return t[m.Code]
		}
	}
	return fmt.Sprintf("error type %d code %d", m.ErrType, m.Code)
}

// Error returns the name of the code and the type of the refused message.
func (m *Error) Error() string {
	if m.ErrType == 0 && len(m.Data) > 0 { // hello failed: the data is a sentence
		return fmt.Sprintf("%s: %q", m.Name(), m.Data)
	}
	if h, err := DecodeHeader(m.Data); err == nil {
		return fmt.Sprintf("%s in reply to %s", m.Name(), h.Type)
	}
	return m.Name()
}

// errorNames has the codes of OpenFlow 1.3 §7.4.4 by type.
var errorNames = [...][]string{
	0: {"OFPHFC_INCOMPATIBLE", "OFPHFC_EPERM"},
	1: {
		"OFPBRC_BAD_VERSION", "OFPBRC_BAD_TYPE", "OFPBRC_BAD_MULTIPART", "OFPBRC_BAD_EXPERIMENTER",
		"OFPBRC_BAD_EXP_TYPE", "OFPBRC_EPERM", "OFPBRC_BAD_LEN", "OFPBRC_BUFFER_EMPTY",
		"OFPBRC_BUFFER_UNKNOWN", "OFPBRC_BAD_TABLE_ID", "OFPBRC_IS_SLAVE", "OFPBRC_BAD_PORT",
		"OFPBRC_BAD_PACKET", "OFPBRC_MULTIPART_BUFFER_OVERFLOW",
	},
	2: {
		"OFPBAC_BAD_TYPE", "OFPBAC_BAD_LEN", "OFPBAC_BAD_EXPERIMENTER", "OFPBAC_BAD_EXP_TYPE",
		"OFPBAC_BAD_OUT_PORT", "OFPBAC_BAD_ARGUMENT", "OFPBAC_EPERM", "OFPBAC_TOO_MANY",
		"OFPBAC_BAD_QUEUE", "OFPBAC_BAD_OUT_GROUP", "OFPBAC_MATCH_INCONSISTENT",
		"OFPBAC_UNSUPPORTED_ORDER", "OFPBAC_BAD_TAG", "OFPBAC_BAD_SET_TYPE",
		"OFPBAC_BAD_SET_LEN", "OFPBAC_BAD_SET_ARGUMENT",
	},
	3: {
		"OFPBIC_UNKNOWN_INST", "OFPBIC_UNSUP_INST", "OFPBIC_BAD_TABLE_ID", "OFPBIC_UNSUP_METADATA",
		"OFPBIC_UNSUP_METADATA_MASK", "OFPBIC_BAD_EXPERIMENTER", "OFPBIC_BAD_EXP_TYPE",
		"OFPBIC_BAD_LEN", "OFPBIC_EPERM", "OFPBIC_DUP_INST",
	},
	4: {
		"OFPBMC_BAD_TYPE", "OFPBMC_BAD_LEN", "OFPBMC_BAD_TAG", "OFPBMC_BAD_DL_ADDR_MASK",
		"OFPBMC_BAD_NW_ADDR_MASK", "OFPBMC_BAD_WILDCARDS", "OFPBMC_BAD_FIELD", "OFPBMC_BAD_VALUE",
		"OFPBMC_BAD_MASK", "OFPBMC_BAD_PREREQ", "OFPBMC_DUP_FIELD", "OFPBMC_EPERM",
	},
	5: {
		"OFPFMFC_UNKNOWN", "OFPFMFC_TABLE_FULL", "OFPFMFC_BAD_TABLE_ID", "OFPFMFC_OVERLAP",
		"OFPFMFC_EPERM", "OFPFMFC_BAD_TIMEOUT", "OFPFMFC_BAD_COMMAND", "OFPFMFC_BAD_FLAGS",
	},
	6: {
		"OFPGMFC_GROUP_EXISTS", "OFPGMFC_INVALID_GROUP", "OFPGMFC_WEIGHT_UNSUPPORTED",
		"OFPGMFC_OUT_OF_GROUPS", "OFPGMFC_OUT_OF_BUCKETS", "OFPGMFC_CHAINING_UNSUPPORTED",
		"OFPGMFC_WATCH_UNSUPPORTED", "OFPGMFC_LOOP", "OFPGMFC_UNKNOWN_GROUP", "OFPGMFC_CHAINED_GROUP",
		"OFPGMFC_BAD_TYPE", "OFPGMFC_BAD_COMMAND", "OFPGMFC_BAD_BUCKET", "OFPGMFC_BAD_WATCH",
		"OFPGMFC_EPERM",
	},
	7: {"OFPPMFC_BAD_PORT", "OFPPMFC_BAD_HW_ADDR", "OFPPMFC_BAD_CONFIG", "OFPPMFC_BAD_ADVERTISE", "OFPPMFC_EPERM"},
	8: {"OFPTMFC_BAD_TABLE", "OFPTMFC_BAD_CONFIG", "OFPTMFC_EPERM"},
	9: {"OFPQOFC_BAD_PORT", "OFPQOFC_BAD_QUEUE", "OFPQOFC_EPERM"},
	10: {
		"OFPSCFC_BAD_FLAGS", "OFPSCFC_BAD_LEN", "OFPSCFC_EPERM",
	},
	11: {"OFPRRFC_STALE", "OFPRRFC_UNSUP", "OFPRRFC_BAD_ROLE"},
	12: {
		"OFPMMFC_UNKNOWN", "OFPMMFC_METER_EXISTS", "OFPMMFC_INVALID_METER", "OFPMMFC_UNKNOWN_METER",
		"OFPMMFC_BAD_COMMAND", "OFPMMFC_BAD_FLAGS", "OFPMMFC_BAD_RATE", "OFPMMFC_BAD_BURST",
		"OFPMMFC_BAD_BAND", "OFPMMFC_BAD_BAND_TYPE", "OFPMMFC_OUT_OF_METERS", "OFPMMFC_OUT_OF_BANDS",
	},
	13: {
		"OFPTFFC_BAD_TABLE", "OFPTFFC_BAD_METADATA", "OFPTFFC_BAD_TYPE", "OFPTFFC_BAD_LEN",
		"OFPTFFC_BAD_ARGUMENT", "OFPTFFC_EPERM",
	},
}

// experimenterErrors has the codes of the ONF's bundle extension and of Open vSwitch
// that a flow program can meet, by experimenter and code.
var experimenterErrors = map[[2]uint32]string{
	{onfExperimenter, 2300}: "OFPBFC_UNKNOWN",
	{onfExperimenter, 2301}: "OFPBFC_EPERM",
	{onfExperimenter, 2302}: "OFPBFC_BAD_ID",
	{onfExperimenter, 2303}: "OFPBFC_BUNDLE_EXIST",
	{onfExperimenter, 2304}: "OFPBFC_BUNDLE_CLOSED",
	{onfExperimenter, 2305}: "OFPBFC_OUT_OF_BUNDLES",
	{onfExperimenter, 2306}: "OFPBFC_BAD_TYPE",
	{onfExperimenter, 2307}: "OFPBFC_BAD_FLAGS",
	{onfExperimenter, 2308}: "OFPBFC_MSG_BAD_LEN",
	{onfExperimenter, 2309}: "OFPBFC_MSG_BAD_XID",
	{onfExperimenter, 2310}: "OFPBFC_MSG_UNSUP",
	{onfExperimenter, 2311}: "OFPBFC_MSG_CONFLICT",
	{onfExperimenter, 2312}: "OFPBFC_MSG_TOO_MANY",
	{onfExperimenter, 2313}: "OFPBFC_MSG_FAILED",
	{onfExperimenter, 2314}: "OFPBFC_TIMEOUT",
	{onfExperimenter, 2315}: "OFPBFC_BUNDLE_IN_PROGRESS",
	{nxVendor, 2}:           "NXBRC_NXM_INVALID",
	{nxVendor, 3}:           "NXBRC_NXM_BAD_TYPE",
	{nxVendor, 4}:           "NXBRC_MUST_BE_ZERO",
	{nxVendor, 5}:           "NXBRC_BAD_REASON",
}

// String returns the standard's name of the message type, such as "OFPT_FLOW_MOD".
func (t MsgType) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return fmt.Sprintf("message type %d", uint8(t))
}

var typeNames = map[MsgType]string{
	TypeHello: "OFPT_HELLO", TypeError: "OFPT_ERROR", TypeEchoRequest: "OFPT_ECHO_REQUEST",
	TypeEchoReply: "OFPT_ECHO_REPLY", TypeExperimenter: "OFPT_EXPERIMENTER",
	TypeFeaturesRequest: "OFPT_FEATURES_REQUEST", TypeFeaturesReply: "OFPT_FEATURES_REPLY",
	TypeGetConfigRequest: "OFPT_GET_CONFIG_REQUEST", TypeGetConfigReply: "OFPT_GET_CONFIG_REPLY",
	TypeSetConfig: "OFPT_SET_CONFIG", TypePacketIn: "OFPT_PACKET_IN",
	TypeFlowRemoved: "OFPT_FLOW_REMOVED", TypePortStatus: "OFPT_PORT_STATUS",
	TypePacketOut: "OFPT_PACKET_OUT", TypeFlowMod: "OFPT_FLOW_MOD", TypeGroupMod: "OFPT_GROUP_MOD",
	TypeMultipartRequest: "OFPT_MULTIPART_REQUEST", TypeMultipartReply: "OFPT_MULTIPART_REPLY",
	TypeBarrierRequest: "OFPT_BARRIER_REQUEST", TypeBarrierReply: "OFPT_BARRIER_REPLY",
	TypeRoleRequest: "OFPT_ROLE_REQUEST", TypeRoleReply: "OFPT_ROLE_REPLY",
	TypeSetAsync: "OFPT_SET_ASYNC", TypeMeterMod: "OFPT_METER_MOD",
}
