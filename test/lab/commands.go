package lab

import (
	"fmt"
	"strings"
)

// each lists something of every master, joined by commas.
func (l *Lab) each(format func(h *Host) string) string {
	var all []string
	for _, h := range l.Masters() {
		all = append(all, format(h))
	}
	return strings.Join(all, ",")
}

// storeEndpoints are the client URLs of every member of the store; h's own member,
// if it has one, comes first.
func (h *Host) storeEndpoints() string {
	url := func(m *Host) string { return fmt.Sprintf("http://%s:2379", m.ControlIP()) }
	all := []string{}
	for _, m := range h.lab.Masters() {
		if m == h {
			all = append([]string{url(m)}, all...)
		} else {
			all = append(all, url(m))
		}
	}
	return strings.Join(all, ",")
}

func (l *Lab) initialCluster() string {
	return l.each(func(m *Host) string { return fmt.Sprintf("%s=http://%s:2380", m.Name, m.ControlIP()) })
}

func (h *Host) netmasterArgs() []string {
	c := h.lab.cfg
	args := []string{
		"netmaster", "--mode", c.Mode, "--netmode", c.NetMode, "--fwdmode", c.FwdMode,
		"--internal-address", h.ControlIP() + ":9999", "--log-level", c.LogLevel,
	}
	if c.Store == StoreEtcd {
		return append(args, "--etcd-endpoints", h.storeEndpoints())
	}
	args = append(
		args, "--store", "embedded", "--store-dir", "/var/lib/contiv/etcd",
		"--store-listen", h.ControlIP()+":2379",
	)
	if c.Masters > 1 {
		args = append(
			args, "--store-name", h.Name, "--store-peer-listen", h.ControlIP()+":2380",
			"--store-initial-cluster", h.lab.initialCluster(),
		)
	}
	return args
}

func (h *Host) netpluginArgs() []string {
	c := h.lab.cfg
	args := []string{
		"netplugin", "--mode", c.Mode, "--netmode", c.NetMode, "--fwdmode", c.FwdMode,
		"--host", h.Name, "--ctrl-ip", h.ControlIP(), "--vtep-ip", h.VTEPIP(),
		"--etcd-endpoints", h.storeEndpoints(), "--log-level", c.LogLevel,
	}
	if c.NetMode == "vlan" {
		args = append(args, "--vlan-uplinks", "eth2")
	}
	return args
}

func (h *Host) etcdArgs() []string {
	client, peer := fmt.Sprintf("http://%s:2379", h.ControlIP()), fmt.Sprintf("http://%s:2380", h.ControlIP())
	return []string{
		"etcd", "--name", h.Name, "--data-dir", "/var/lib/etcd/lab",
		"--listen-client-urls", client + ",http://127.0.0.1:2379", "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", h.lab.initialCluster(), "--initial-cluster-state", "new",
	}
}
