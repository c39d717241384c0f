package commands

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/doctorapi"
)

func supportCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` to write (default: contiv-support-TIME.tar.gz)"},
		&cli.IntFlag{Name: "size", Usage: "largest size of all files together in `MB`, 1 to 500", Value: doctorapi.DefaultSize >> 20},
	}
	return leaf("support-bundle", "collect from netmaster and all hosts what support needs, without secrets", noArguments(), flags, makeBundle)
}

func makeBundle(ctx context.Context, cmd *cli.Command) (err error) {
	size := cmd.Int("size")
	if size < 1 || size > doctorapi.LargestSize>>20 {
		return misuse("Invalid size %d: expected 1 to %d", size, doctorapi.LargestSize>>20)
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	name := cmd.String("output")
	if name == "" {
		name = "contiv-support-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &failure{status: exitLocal, err: fmt.Errorf("write the bundle: %w", err)}
	}
	asked := c.SupportBundle(ctx, file, size<<20)
	closed := file.Close()
	if asked != nil || closed != nil {
		_ = os.Remove(name) // nothing but a part of it
	}
	switch {
	case asked != nil:
		return refused(asked)
	case closed != nil:
		return &failure{status: exitLocal, err: fmt.Errorf("write the bundle: %w", closed)}
	}
	return print(cmd, name+"\n")
}
