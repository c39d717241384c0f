package commands

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/securityapi"
)

func hostCommands() *cli.Command {
	return &cli.Command{
		Name: "host", Usage: "certificates of hosts",
		Commands: []*cli.Command{
			leaf("ls", "list hosts with their certificates", noArguments(), []cli.Flag{quietFlag(), jsonFlag()}, listCertificates),
			leaf("revoke", "cut a host off: its certificates do not count any more",
				arguments{names: "NAME", count: 1, missing: "Host name required"}, nil, revokeHost),
			joinTokenCommands(),
		},
	}
}

func joinTokenCommands() *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "tokens that hosts join the cluster with",
		Commands: []*cli.Command{
			atOnce(leaf("create", "make a join token, and print it", noArguments(), []cli.Flag{
				&cli.DurationFlag{Name: "ttl", Usage: "how long it can be used, `DURATION`"},
				&cli.IntFlag{Name: "uses", Usage: "how many hosts can join with it, `NUMBER` up to 1000", Value: 1},
				&cli.StringFlag{Name: "host", Usage: "the only host `LABEL` that can join with it"},
				&cli.BoolFlag{Name: "monitor", Usage: "for a collector of metrics, instead of an agent"},
			}, createJoinToken)),
			leaf("ls", "list join tokens that can be used", noArguments(), []cli.Flag{quietFlag(), jsonFlag()}, listJoinTokens),
			atOnce(leaf("rm", "remove a join token", arguments{names: "ID", count: 1, missing: "Token id required"}, nil, removeJoinToken)),
		},
	}
}

func createJoinToken(ctx context.Context, cmd *cli.Command) error {
	req := securityapi.TokenRequest{Uses: cmd.Int("uses"), Host: cmd.String("host"), Monitor: cmd.Bool("monitor")}
	if req.Uses < 1 {
		return misuse("Invalid uses %d: expected at least 1", req.Uses)
	}
	if cmd.IsSet("ttl") {
		req.TTL = cmd.Duration("ttl").String()
	}
	var t securityapi.Token
	if err := askSecurity(ctx, cmd, http.MethodPost, securityapi.PathTokens, req, &t); err != nil {
		return err
	}
	return print(cmd, t.Token+"\n")
}

func listJoinTokens(ctx context.Context, cmd *cli.Command) error {
	var tokens []securityapi.Token
	if err := askSecurity(ctx, cmd, http.MethodGet, securityapi.PathTokens, nil, &tokens); err != nil {
		return err
	}
	if cmd.Bool("json") {
		return printJSON(cmd, tokens)
	}
	text, rows := "", [][]string{}
	for _, t := range tokens {
		text += t.ID + "\n"
		rows = append(rows, []string{t.ID, t.Unit, t.Host, strconv.Itoa(t.Left), when(t.Expires)})
	}
	if cmd.Bool("quiet") {
		return print(cmd, text)
	}
	return print(cmd, table{headers: []string{"ID", "For", "Host", "Uses", "Expires"}, dashes: []int{2, 3, 4, 4, 7}}.format(rows))
}

func removeJoinToken(ctx context.Context, cmd *cli.Command) error {
	return askSecurity(ctx, cmd, http.MethodDelete, securityapi.PathTokens+"/"+url.PathEscape(cmd.Args().First()), nil, nil)
}

func listCertificates(ctx context.Context, cmd *cli.Command) error {
	var hosts []securityapi.Host
	if err := askSecurity(ctx, cmd, http.MethodGet, securityapi.PathHosts, nil, &hosts); err != nil {
		return err
	}
	if cmd.Bool("json") {
		return printJSON(cmd, hosts)
	}
	text, rows := "", [][]string{}
	for _, h := range hosts {
		text += h.Name + "\n"
		rows = append(rows, []string{h.Name, h.Unit, h.State, when(h.Expires), h.Joined})
	}
	if cmd.Bool("quiet") {
		return print(cmd, text)
	}
	return print(cmd, table{headers: []string{"Name", "Unit", "State", "Expires", "Joined by"}, dashes: []int{4, 4, 5, 7, 9}}.format(rows))
}

func revokeHost(ctx context.Context, cmd *cli.Command) error {
	name := cmd.Args().First()
	if err := askSecurity(ctx, cmd, http.MethodDelete, securityapi.PathHosts+"/"+url.PathEscape(name), nil, nil); err != nil {
		return err
	}
	return print(cmd, "Revoked "+name+"\n")
}
