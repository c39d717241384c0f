package commands

import (
	"context"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/clusterapi"
)

func clusterCommands() *cli.Command {
	return &cli.Command{
		Name: "cluster", Usage: "hosts and their state",
		Commands: []*cli.Command{
			leaf("ls", "list hosts with their applied revisions", noArguments(), []cli.Flag{jsonFlag(), quietFlag()}, listHosts),
		},
	}
}

func listHosts(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return refused(err)
	}
	switch {
	case cmd.Bool("json"):
		return printJSON(cmd, cluster)
	case cmd.Bool("quiet"):
		text := ""
		for _, h := range cluster.Hosts {
			text += h.Host + "\n"
		}
		return print(cmd, text)
	}
	rows := make([][]string, len(cluster.Hosts))
	for i, h := range cluster.Hosts {
		rows[i] = []string{
			h.Host, h.State, h.VTEP, h.Version, strconv.FormatInt(h.Revision, 10), strconv.FormatInt(h.Lag, 10),
			strconv.Itoa(h.Flows), strconv.Itoa(h.Endpoints), health(h),
		}
	}
	return print(cmd, table{
		headers: []string{"Host", "State", "VTEP", "Version", "Revision", "Lag", "Flows", "Endpoints", "Health"},
		dashes:  []int{4, 5, 4, 7, 8, 3, 5, 9, 6},
	}.format(rows))
}

// health puts into words what a host's state means.
func health(h clusterapi.Host) string {
	switch {
	case h.State == clusterapi.Gone && h.CleanUp != "":
		return "not registered since " + h.Gone + ", endpoints are removed at " + h.CleanUp
	case h.State == clusterapi.Gone:
		return "not registered"
	case h.State == clusterapi.Silent:
		return "does not report to the leader"
	case len(h.Reasons) > 0:
		return strings.Join(h.Reasons, "; ")
	}
	return "ok"
}
