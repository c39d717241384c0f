package commands

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/securityapi"
)

func securityCommands() *cli.Command {
	return &cli.Command{
		Name: "security", Usage: "how far the cluster is closed",
		Commands: []*cli.Command{
			leaf("status", "show the TLS mode of a netmaster, and which clients still come without TLS", noArguments(), []cli.Flag{jsonFlag()}, showSecurity),
		},
	}
}

func showSecurity(ctx context.Context, cmd *cli.Command) error {
	var s securityapi.Status
	if err := askSecurity(ctx, cmd, http.MethodGet, securityapi.PathStatus, nil, &s); err != nil {
		return err
	}
	return show(cmd, s, describeSecurity(s, time.Now()))
}

func describeSecurity(s securityapi.Status, now time.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, "TLS: %s\n", s.Mode)
	count := map[string]int{}
	for _, h := range s.Hosts {
		count[h.State]++
	}
	fmt.Fprintf(&text, "Certificates: %d valid, %d expired, %d revoked\n", count[securityapi.HostValid], count[securityapi.HostExpired], count[securityapi.HostRevoked])
	switch {
	case len(s.Plain) > 0:
		fmt.Fprintf(&text, "Without TLS, since this netmaster started:\n")
	case s.Mode == "accept":
		text.WriteString("No client has come without TLS since this netmaster started.\n")
	}
	for _, from := range slices.Sorted(maps.Keys(s.Plain)) {
		fmt.Fprintf(&text, "  %s, last %s ago\n", from, now.Sub(s.Plain[from]).Round(time.Second))
	}
	return text.String()
}
