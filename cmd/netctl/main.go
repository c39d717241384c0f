// Netctl is Contiv's command line client.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/contiv/netplugin/cmd/netctl/internal/commands"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := commands.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
