package main

import (
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/netmaster/doctor"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/pki"
)

// own tells netctl doctor of this netmaster.
func (o *options) own(creds *pki.Credentials) func() doctor.Own {
	return func() doctor.Own {
		is := doctor.Own{Certificate: doctorapi.CertificateOf(creds), Authority: doctorapi.AuthorityOf(creds)}
		if o.store.Kind == cliconf.StoreEmbedded {
			is.Disk = diskOf(o.member.cfg.Dir)
		}
		return is
	}
}

// diskOf returns how full the disk of a directory is for those who are not root; nothing if it
// cannot be found out.
func diskOf(dir string) (d doctor.Disk) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Bsize <= 0 {
		return d
	}
	block := uint64(st.Bsize)
	used := (st.Blocks - st.Bfree) * block
	return doctor.Disk{Used: used, Total: used + st.Bavail*block}
}
