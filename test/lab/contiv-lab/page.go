package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/test/lab"
)

// pagePort is where netmaster serves its page, and this machine by default.
const pagePort = "9999"

func pageCommand() *cli.Command {
	return &cli.Command{
		Name: "page", Usage: "make netmaster's page reachable from this machine, until interrupted or the lab is taken down",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "address and port of this machine; by default 127.0.0.1:" + pagePort + ", or another port if this one is in use"},
		},
		Action: action(nil, func(ctx context.Context, l *lab.Lab, c *cli.Command, _ []string) error {
			in, err := listenForPage(ctx, c.String("listen"))
			if err != nil {
				return err
			}
			h := l.Masters()[0]
			if err := tellPage(os.Stdout, l, h, in.Addr().String(), c.String("dir")); err != nil {
				return errors.Join(err, in.Close())
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				_ = h.AwaitEnd(ctx) // the host has ended, or this command does
				cancel()
			}()
			return h.Forward(ctx, in, net.JoinHostPort(h.ControlIP(), pagePort))
		}),
	}
}

// listenForPage listens at an address, by default at one that is free.
func listenForPage(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	if address != "" {
		return lc.Listen(ctx, "tcp", address)
	}
	in, err := lc.Listen(ctx, "tcp", "127.0.0.1:"+pagePort)
	if errors.Is(err, syscall.EADDRINUSE) {
		return lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	return in, err
}

// tellPage says where the page is, and how to log in.
func tellPage(w io.Writer, l *lab.Lab, h *lab.Host, address, dir string) error {
	if !l.Config().TLS.TLS() {
		_, err := fmt.Fprintf(w, "http://%s/ui/\n", address)
		return err
	}
	program := os.Args[0]
	if dir != defaultDir {
		program += " --dir " + dir
	}
	_, err := fmt.Fprintf(w, `https://%s/ui/
log in as admin; this prints the password:
%s exec %s -- cat %s/initial-admin-password
browsers do not know the lab's certificate authority and ask you whether to go on
`, address, program, h.Name, lab.MasterTLSDir)
	return err
}
