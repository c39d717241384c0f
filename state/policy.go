package state

import "strings"

// PolicyRule is one direction of a user's rule for one group under its policy, as
// agents must enforce it. It stands under PolicyRuleRoot + RuleID.
type PolicyRule struct {
	// RuleID is <tenant>:<group>:<tenant>:<policy>:<key of the rule>:<name>, name being
	// inRx, inTx, outRx or outTx, or one of these and 6.
	RuleID           string `json:"RuleId"`
	Priority         int    `json:"Priority"`            // 1–100, higher wins
	SrcEndpointGroup int    `json:"SrcEndpointGroup"`    // group number; 0 = any
	DstEndpointGroup int    `json:"DstEndpointGroup"`    // group number; 0 = any
	SrcIPAddr        string `json:"SrcIpAddr"`           // address or masked CIDR; empty = any
	DstIPAddr        string `json:"DstIpAddr"`           // address or masked CIDR; empty = any
	IPProtocol       int    `json:"IpProtocol"`          // 0–255; 0 = any
	SrcPort          int    `json:"SrcPort"`             // 0 = any
	DstPort          int    `json:"DstPort"`             // 0 = any
	TCPFlags         string `json:"TcpFlags"`            // empty or "syn,!ack"
	Action           string `json:"Action"`              // allow | deny | reject
	Mode             string `json:"Mode,omitempty"`      // audit: it decides nothing; empty: it is enforced
	AuditFile        bool   `json:"AuditFile,omitempty"` // connections that it decides go to the hosts' audit files
}

// Names returns the names of the policy and of the rule that a record has been made of; empty
// if its id is not one of netmaster's.
func (r PolicyRule) Names() (policy, rule string) {
	parts := strings.Split(r.RuleID, ":")
	if len(parts) != 8 {
		return "", ""
	}
	return parts[3], parts[6]
}
