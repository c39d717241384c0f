package hostnet

import (
	"encoding/binary"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// generation is the number of nftables' rule set in this network namespace. The kernel counts
// it up with every change, whoever makes it, so rules need not be read again while it is the
// same (NFT_MSG_GETGEN, linux/netfilter/nf_tables.h). Numbers begin with 1; 0: the kernel does
// not say.
func generation() uint32 {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: nl.NFNETLINK_V0})
	answers, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN)
	if err != nil || len(answers) == 0 || len(answers[0]) < nl.SizeofNfgenmsg {
		return 0
	}
	attrs, err := nl.ParseRouteAttr(answers[0][nl.SizeofNfgenmsg:])
	if err != nil {
		return 0
	}
	for _, attr := range attrs {
		if attr.Attr.Type == unix.NFTA_GEN_ID && len(attr.Value) == 4 {
			return binary.BigEndian.Uint32(attr.Value)
		}
	}
	return 0
}
