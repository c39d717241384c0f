package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// each lists something of every master, joined by commas.
func (l *Lab) each(format func(h *Host) string) string {
	var all []string
	for _, h := range l.Masters() {
		all = append(all, format(h))
	}
	return strings.Join(all, ",")
}

// storeFlags say where the store is: the client URLs of every member of it; h's own
// member, if it has one, comes first.
func (h *Host) storeFlags() []string {
	flag, port := "--etcd-endpoints", 2379
	if h.lab.cfg.Store == StoreConsul {
		flag, port = "--consul-endpoints", 8500
	}
	url := func(m *Host) string { return fmt.Sprintf("http://%s:%d", m.ControlIP(), port) }
	all := []string{}
	for _, m := range h.lab.Masters() {
		if m == h {
			all = append([]string{url(m)}, all...)
		} else {
			all = append(all, url(m))
		}
	}
	return []string{flag, strings.Join(all, ",")}
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
	args = append(append(args, h.masterTLS()...), c.MasterFlags...)
	if c.SharedDocker {
		args = append(args, "--docknet-scope", "global")
	}
	if c.Store != StoreEmbedded {
		return append(args, h.storeFlags()...)
	}
	args = append(
		args, "--store", "embedded", "--store-dir", "/var/lib/contiv/etcd",
		"--store-listen", h.ControlIP()+":2379",
	)
	if c.Kubernetes {
		args = append(args, "--default-subnet", "20.1.0.0/16", "--default-subnet-v6", "fd00:20:1::/64")
	}
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
		"--log-level", c.LogLevel, "--ovs-datapath", c.Datapath,
	}
	args = append(args, h.storeFlags()...)
	args = append(args, h.agentTLS()...)
	switch {
	case c.Takeover:
		args = append(args, "--vlan-uplinks", "eth0", "--takeover")
	case c.NetMode == "vlan":
		args = append(args, "--vlan-uplinks", "eth2")
	}
	if c.DNS != "" {
		args = append(args, "--dns", c.DNS)
	}
	if c.Kubernetes {
		args = append(args, "--cni-conf-dir", "/etc/cni/net.d", "--service-proxy", c.ServiceProxy)
		if c.Tenancy != "" {
			args = append(args, "--tenancy", c.Tenancy)
		}
	}
	if c.Mesos {
		args = append(args, "--mesos")
	}
	if c.SharedDocker {
		args = append(args, "--docknet-scope", "global")
	}
	if c.Relay {
		args = append(args, "--docker-plugin-socket", "/run/contiv/docker-plugin.sock")
	}
	return append(args, c.AgentFlags...)
}

func (h *Host) etcdArgs() []string {
	client, peer := fmt.Sprintf("http://%s:2379", h.ControlIP()), fmt.Sprintf("http://%s:2380", h.ControlIP())
	return []string{
		"etcd", "--name", h.Name, "--data-dir", "/var/lib/etcd/lab",
		"--listen-client-urls", client + ",http://127.0.0.1:2379", "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", h.lab.initialCluster(), "--initial-cluster-state", "new",
		"--enable-v2", // for Engines that share networks
	}
}

// consulBinary is where scripts/consul puts the server.
func consulBinary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errs.New(errs.NotFound, "where Consul was built: %w", err)
	}
	return filepath.Join(cache, "contiv", "consul-1.20.6", "consul"), nil
}

// ConsulBinary is the Consul of labs, for tests that run one of their own.
func ConsulBinary() string {
	binary, err := consulBinary()
	if err != nil {
		return consul // findPrograms has told
	}
	return binary
}

func (h *Host) consulArgs() []string {
	args := []string{
		ConsulBinary(), "agent", "-server", fmt.Sprintf("-bootstrap-expect=%d", h.lab.cfg.Masters),
		"-node", h.Name, "-data-dir", "/var/lib/consul/lab", "-bind", h.ControlIP(),
		"-client", h.ControlIP() + " 127.0.0.1", "-log-level", "warn",
		"-hcl", "disable_update_check = true",
		"-hcl", "performance { raft_multiplier = 1 }",
		"-hcl", "ports { dns = -1, grpc = -1, grpc_tls = -1, serf_wan = -1 }",
	}
	for _, m := range h.lab.Masters() {
		if m != h {
			args = append(args, "-retry-join", m.ControlIP())
		}
	}
	return append(args, "-retry-interval", "1s")
}
