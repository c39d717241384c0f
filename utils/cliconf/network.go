package cliconf

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// Network is the group of options about what kind of network this is. Validate brings
// the values to lower case.
type Network struct {
	Mode    string // docker | kubernetes | swarm-mode | test
	NetMode string // vlan | vxlan
	FwdMode string // bridge | routing
}

// Flags returns the options; parsing fills n.
func (n *Network) Flags(env Env) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "mode", Aliases: []string{"plugin-mode", "cluster-mode"}, Category: "network", Destination: &n.Mode,
			Sources: env.Var("MODE"), Usage: "docker, kubernetes, swarm-mode or test (required)",
		},
		&cli.StringFlag{
			Name: "netmode", Aliases: []string{"network-mode"}, Category: "network", Destination: &n.NetMode,
			Sources: env.Var("NET_MODE"), Usage: "vlan or vxlan (required)",
		},
		&cli.StringFlag{
			Name: "fwdmode", Aliases: []string{"forward-mode"}, Category: "network", Destination: &n.FwdMode,
			Sources: env.Var("FORWARD_MODE"), Usage: "bridge or routing (required)",
		},
	}
}

// Validate checks the options in the order of their table and returns a UsageError
// for the first that is missing, unknown, or conflicts with another.
func (n *Network) Validate() error {
	for _, o := range []struct {
		flag  string
		value *string
		known []string
	}{
		{"--mode", &n.Mode, []string{"docker", "kubernetes", "swarm-mode", "test"}},
		{"--netmode", &n.NetMode, []string{"vlan", "vxlan"}},
		{"--fwdmode", &n.FwdMode, []string{"bridge", "routing"}},
	} {
		if err := OneOf(o.flag, o.value, o.known...); err != nil {
			return err
		}
	}
	if n.NetMode == "vxlan" && n.FwdMode == "bridge" {
		return Usagef("--netmode vxlan requires --fwdmode routing")
	}
	return nil
}

// OneOf checks that an option has one of the known values, whatever its case, and
// brings it to lower case.
func OneOf(flag string, value *string, known ...string) error {
	expected := strings.Join(known, ", ")
	if *value == "" {
		return Usagef("%s is not set, expected one of %s", flag, expected)
	}
	lower := strings.ToLower(*value)
	if !slices.Contains(known, lower) {
		return Usagef("%s %q is unknown, expected one of %s", flag, *value, expected)
	}
	*value = lower
	return nil
}
