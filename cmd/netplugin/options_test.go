package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/contiv/netplugin/utils/cliconf"
)

// TestAgentOptions: what is wrong with the command line is told in one line, before
// anything is touched.
func TestAgentOptions(t *testing.T) {
	good := []string{"--mode", "test", "--netmode", "vxlan", "--fwdmode", "routing", "--ctrl-ip", "127.0.0.1", "--vtep-ip", "127.0.0.1"}
	for name, tt := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"no mode":                {[]string{"--mode="}, nil, "--mode is not set, expected one of docker, kubernetes, swarm-mode, test"},
		"no forwarding mode":     {[]string{"--fwdmode="}, nil, "--fwdmode is not set, expected one of bridge, routing"},
		"forwarding mode":        {[]string{"--fwdmode", "switch"}, nil, `--fwdmode "switch" is unknown, expected one of bridge, routing`},
		"modes that do not go":   {[]string{"--fwdmode", "bridge"}, nil, "--netmode vxlan requires --fwdmode routing"},
		"VLANs without uplinks":  {[]string{"--netmode", "vlan"}, nil, "vlan-uplinks must be set when using VLAN mode"},
		"stores":                 {[]string{"--etcd", "http://127.0.0.1:1", "--consul", "http://127.0.0.1:2"}, nil, "ambiguous cluster store db endpoints: both --etcd-endpoints and --consul-endpoints are set"},
		"host label":             {[]string{"--host-label", "a/b"}, nil, `--host "a/b": expected a label without slashes and spaces`},
		"tunnel address":         {[]string{"--vtep-ip", "::"}, nil, `--vtep-ip "::": expected the address of this host`},
		"tunnel network":         {[]string{"--vtep-network", "10.0.0.1"}, nil, `--vtep-network "10.0.0.1": expected a subnet such as 192.168.60.0/24`},
		"not in the network":     {[]string{"--vtep-network", "240.0.0.0/24"}, nil, `--vtep-network 240.0.0.0/24: this host has no address in it`},
		"CNI configuration":      {[]string{"--cni-config", "{"}, nil, "--cni-config: expected a CNI network configuration or list, in JSON: unexpected end of JSON input"},
		"CNI without a plugin":   {[]string{"--cni-config", `{"name":"x"}`}, nil, "--cni-config: expected a CNI network configuration or list, in JSON: there is neither plugins nor a type in it"},
		"control address in env": {[]string{"--ctrl-ip="}, map[string]string{"CONTROL_IP": "here"}, `--ctrl-ip "here": expected the address of this host`},
		"tunnel port":            {[]string{"--vxlan-port", "70000"}, nil, "--vxlan-port 70000: expected 1 to 65535"},
		"datapath":               {[]string{"--ovs-datapath", "kernel"}, nil, `--ovs-datapath "kernel" is unknown, expected one of auto, system, netdev`},
		"unknown option":         {[]string{"--verbose"}, nil, "unknown option --verbose"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv("CONTIV_NETPLUGIN_"+k, v)
			}
			args := slices.Concat([]string{"netplugin"}, good, tt.args)
			if tt.env != nil { // an option would hide it
				args = []string{"netplugin", "--mode", "test", "--netmode", "vxlan", "--fwdmode", "routing", "--vtep-ip", "127.0.0.1"}
			}
			var out, stderr bytes.Buffer
			cmd := command()
			cmd.Writer, cmd.ErrWriter = &out, &stderr
			status := cliconf.Run(t.Context(), cmd, args)
			if want := "netplugin: " + tt.want + " (see netplugin --help)\n"; status != cliconf.ExitUsage || stderr.String() != want {
				t.Errorf("status %d, stderr %q; want 22, %q", status, stderr.String(), want)
			}
		})
	}
}

// TestTunnelAddress: every host finds its own address in a network that is the same for
// all.
func TestTunnelAddress(t *testing.T) {
	a, err := tunnelAddress(t.Context(), "127.0.0.0/8", "192.0.2.1")
	if err != nil || a.String() != "127.0.0.1" {
		t.Errorf("address %s, %v", a, err)
	}
	if a, err := tunnelAddress(t.Context(), "", "192.0.2.1"); err != nil || a.String() != "192.0.2.1" {
		t.Errorf("without a network: %s, %v", a, err)
	}
}
