package commands

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/pki"
)

func authorityCommands() *cli.Command {
	return &cli.Command{
		Name: "ca", Usage: "certificate authority of the cluster",
		Commands: []*cli.Command{
			leaf("show", "show the certificate authority, and who has yet to get a certificate of it", noArguments(), []cli.Flag{
				jsonFlag(), &cli.BoolFlag{Name: "pem", Usage: "print the certificates of the authorities that count"},
			}, showAuthority),
			leaf("rotate", "replace the certificate authority; hosts and netmasters renew by themselves", noArguments(), []cli.Flag{
				&cli.BoolFlag{Name: "finish", Usage: "end a rotation at once: certificates of the former authority do not count any more"},
			}, rotateAuthority),
			leaf("issue", "make a key and a certificate for a program, in files",
				arguments{names: "NAME", count: 1, missing: "Name required"}, []cli.Flag{
					&cli.StringFlag{Name: "unit", Usage: "`UNIT` that it is for: monitor or agent", Value: string(pki.UnitMonitor)},
					&cli.DurationFlag{Name: "ttl", Usage: "how long it is valid, `DURATION`"},
					&cli.StringFlag{Name: "out", Usage: "`FOLDER` for " + certFile + ", " + keyFile + " and " + rootsFile, Required: true},
				}, issueCertificate),
		},
	}
}

// Files of an issued certificate.
const (
	certFile  = "tls.crt"
	keyFile   = "tls.key"
	rootsFile = "ca.crt"
)

func showAuthority(ctx context.Context, cmd *cli.Command) error {
	var s securityapi.Status
	if err := askSecurity(ctx, cmd, http.MethodGet, securityapi.PathStatus, nil, &s); err != nil {
		return err
	}
	switch {
	case cmd.Bool("json"):
		return printJSON(cmd, s.Authority)
	case cmd.Bool("pem"):
		return print(cmd, s.Authority.RootsPEM)
	}
	return print(cmd, describeAuthority(s.Authority))
}

func describeAuthority(a securityapi.Authority) string {
	if a.Hash == "" {
		return "The cluster has its own certificates (--tls-ca).\n"
	}
	var text strings.Builder
	line := func(name, value string) { fmt.Fprintf(&text, "%-11s%s\n", name+":", value) }
	line("Authority", a.Hash)
	line("Expires", when(a.Expires))
	if a.Rotating {
		line("Former", strings.Join(a.Former, ", "))
		waiting := "nobody"
		if len(a.Waiting) > 0 {
			waiting = strings.Join(a.Waiting, ", ")
		}
		line("Waiting", waiting)
		if a.ByHand && len(a.Waiting) == 0 {
			line("Next", "restart the netmasters one after the other, then run: netctl ca rotate --finish")
		}
	}
	if a.Problem != "" {
		line("Problem", a.Problem)
	}
	return text.String()
}

func rotateAuthority(ctx context.Context, cmd *cli.Command) error {
	var a securityapi.Authority
	req := securityapi.RotateRequest{Finish: cmd.Bool("finish")}
	if err := askSecurity(ctx, cmd, http.MethodPost, securityapi.PathRotate, req, &a); err != nil {
		return err
	}
	return print(cmd, describeAuthority(a))
}

// issueCertificate makes the key here: it never leaves this machine.
func issueCertificate(ctx context.Context, cmd *cli.Command) error {
	name, dir := cmd.Args().First(), strings.TrimRight(cmd.String("out"), "/")
	csr, key, err := pki.NewRequest(name)
	if err != nil {
		return &failure{status: exitLocal, err: err}
	}
	req := securityapi.IssueRequest{Name: name, Unit: cmd.String("unit"), CSR: string(csr)}
	if cmd.IsSet("ttl") {
		req.TTL = cmd.Duration("ttl").String()
	}
	var cert securityapi.Certificate
	if err := askSecurity(ctx, cmd, http.MethodPost, securityapi.PathIssue, req, &cert); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{{keyFile, string(key)}, {certFile, cert.Certificate}, {rootsFile, cert.Roots}} {
		if err := pki.WriteFile(dir+"/"+f.name, []byte(f.text)); err != nil {
			return &failure{status: exitLocal, err: err}
		}
	}
	return print(cmd, "Wrote "+dir+"/"+certFile+", "+dir+"/"+keyFile+" and "+dir+"/"+rootsFile+"\n")
}
