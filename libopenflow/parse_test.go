package libopenflow

import (
	"strings"
	"testing"
)

// TestParseSpellings reads what people and other versions of ovs-ofctl write.
func TestParseSpellings(t *testing.T) {
	for in, want := range map[string]string{
		" cookie=0x2a, duration=5.1s, table=4, n_packets=9, n_bytes=0, idle_age=3, priority=100,ip actions=drop": "cookie=0x2a, table=4, priority=100,ip actions=drop",
		"ip,nw_dst=10.0.0.0/255.0.0.0,priority=1,actions=2":                                                      "priority=1,ip,nw_dst=10.0.0.0/8 actions=output:2",
		"nw_src=10.0.0.9/24,ip actions=":                                                                         "ip,nw_src=10.0.0.0/24 actions=drop",
		"tp_dst=80,nw_proto=6,dl_type=0x800":                                                                     "tcp,tp_dst=80 actions=drop",
		"tcp,tcp_dst=80 action=normal":                                                                           "tcp,tp_dst=80 actions=NORMAL",
		"arp,nw_dst=10.0.0.1,nw_proto=1 actions=controller":                                                      "arp,arp_tpa=10.0.0.1,arp_op=1 actions=CONTROLLER:65535",
		"eth_src=2:2:0:0:0:1,tunnel_id=5 actions=load:5->reg3[0..7],output:reg3":                                 "tun_id=0x5,dl_src=02:02:00:00:00:01 actions=load:0x5->NXM_NX_REG3[0..7],output:NXM_NX_REG3[]",
		"xreg0=0x100000002 actions=set_field:10.0.0.1->nw_src":                                                   "reg0=0x1,reg1=0x2 actions=set_field:10.0.0.1->ip_src",
		"ct_state=+trk,ct_state=+new-est+trk actions=resubmit(in_port,5)":                                        "ct_state=+new-est+trk actions=resubmit(,5)",
		"icmp6,icmp_type=135,icmpv6_code=0 actions=goto_table:3,meter:5":                                         "icmp6,icmp_type=135,icmp_code=0 actions=meter:5,goto_table:3",
		"vlan_tci=0x1005/0x1fff actions=strip_vlan,move:OXM_OF_ETH_SRC[]->eth_dst[]":                             "dl_vlan=5 actions=pop_vlan,move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]",
		"actions=ct(nat(src=[2001:db8::1]:5),zone=3,commit)":                                                     "actions=ct(commit,zone=3,nat(src=[2001:db8::1]:5))",
		"actions=controller:128,controller(max_len=7),bundle(eth_src,0,hrw,ofport,slaves:1,2)":                   "actions=CONTROLLER:128,CONTROLLER:7,bundle(eth_src,0,hrw,ofport,members:1,2)",
		"in_port=65534 actions=output:0xfffffffe,set_field:LOCAL->in_port_oxm":                                   "in_port=LOCAL actions=LOCAL,set_field:LOCAL->in_port_oxm",
	} {
		f, err := ParseFlow(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if want = strings.Replace(want, "priority=32768,", "", 1); f.String() != want {
			t.Errorf("%s\n got %s\nwant %s", in, f, want)
		}
	}
}

// TestParseRefuses checks that errors name what is wrong.
func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"priority=70000 actions=drop":                                       `priority=70000: "70000": expected a number of 16 bits`,
		"table=256 actions=drop":                                            "table=256",
		"nonsense actions=drop":                                             `"nonsense": unknown name`,
		"nonsense=1 actions=drop":                                           `unknown field "nonsense"`,
		"ip,nw_dst=10.0.0.256 actions=drop":                                 `"10.0.0.256": expected an address of 32 bits`,
		"ip,nw_dst=10.0.0.0/33 actions=drop":                                "nw_dst=10.0.0.0/33",
		"ip,nw_dst=2001:db8::1 actions=drop":                                "expected an address of 32 bits",
		"ip,tp_dst=80 actions=drop":                                         "tp_dst=80: needs a protocol that has it",
		"dl_src=1:2:3 actions=drop":                                         "six hexadecimal bytes",
		"dl_vlan=4096 actions=drop":                                         "expected a VLAN id",
		"nw_tos=3,ip actions=drop":                                          "multiple of 4",
		"ct_state=trk+new actions=drop":                                     `"trk+new": expected one of new, est`,
		"ct_state=+what actions=drop":                                       `"what": expected one of new, est`,
		"vlan_tci=0x1000/0x3000 actions=drop":                               "all or none of the priority bits",
		"reg0=0x100000000 actions=drop":                                     "expected a number of 32 bits",
		"oxm:00=00 actions=drop":                                            "expected a header of 4 bytes",
		"actions=drop,output:1":                                             "drop: expected nothing before or after it",
		"actions=fly":                                                       "fly: unknown action",
		"actions=goto_table:256":                                            "goto_table:256",
		"actions=output:nowhere":                                            "output:nowhere: expected a port or a field",
		"actions=set_field:1":                                               "expected ->",
		"actions=set_field:1->what":                                         `unknown field "what"`,
		"actions=load:256->NXM_NX_REG0[0..7]":                               "expected a number of 8 bits",
		"actions=load:1->NXM_NX_REG0[8..7]":                                 "expected bits of 0..31",
		"actions=load:1->NXM_NX_REG0[8":                                     "a parenthesis is not closed",
		"actions=move:NXM_NX_REG0[]->NXM_NX_REG1[0..7]":                     "as many bits on both sides",
		"actions=resubmit(1,2,3)":                                           "expected resubmit(port,table)",
		"actions=ct(commit":                                                 "a parenthesis is not closed",
		"actions=ct(what)":                                                  "what: unknown argument",
		"actions=ct(nat(src=10.0.0.x))":                                     "expected an address",
		"actions=conjunction(1,0/2)":                                        "expected conjunction(id,clause/clauses)",
		"actions=multipath(eth_src,0,modulo_n,0,0,reg0)":                    "expected 1 to 65536 links",
		"actions=learn(what=1)":                                             `unknown field "what"`,
		"actions=controller(what=1)":                                        "what=1: unknown option",
		"actions=check_pkt_larger(1)->reg0":                                 "expected one bit",
		"actions=clone(clone(clone(clone(clone(clone(clone(clone(1)))))":    "a parenthesis is not closed",
		"actions=clone(clone(clone(clone(clone(clone(clone(clone(1))))))))": "nested more than 8 deep",
	} {
		_, err := ParseFlow(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", in, err, want)
		}
	}
	for in, want := range map[string]string{
		"group_id=x,type=all":                   "expected a number of 32 bits",
		"group_id=1,type=what":                  "expected one of all, select, indirect, ff",
		"group_id=1,what=2":                     "unknown property",
		"group_id=1,type=all,bucket=fly":        "fly: unknown action",
		"group_id=1,type=select,bucket=weight:": "expected a number of 16 bits",
		"group_id=1,type=ff,bucket=weight:3":    "only buckets of type select",
	} {
		_, err := ParseGroup(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", in, err, want)
		}
	}
}
