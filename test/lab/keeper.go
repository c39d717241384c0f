package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/errs"
)

// keepArg is the first argument of a lab's keeper; the lab's directory follows. A keeper
// is a process of its own, as a killed process cannot clean up. It holds one end of a
// pipe whose other end is held by the lab's maker only, so that it notices the maker's
// end, however it ends.
const keepArg = "__keep"

// keepTimeout bounds what a keeper does when its maker has gone.
const keepTimeout = 5 * time.Minute

// Play runs the role that the arguments of a program name, if they name one: that
// of a host's init or of a lab's keeper. Programs that Config.Init may name call it first.
func Play(args []string) (status int, played bool) {
	switch {
	case len(args) > 1 && args[1] == InitArg:
		return hostinit.Main(), true
	case len(args) == 3 && args[1] == keepArg:
		if err := keep(os.Stdin, args[2]); err != nil {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// Tie makes a keeper take down the lab in dir, which need not exist yet, when this process ends
// before it unties it, for example when it is killed. init is as in Config.Init.
func Tie(init, dir string) (untie func() error, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	program, err := filepath.Abs(init) // as seen from here, not from where it runs
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, keepArg, dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what a terminal sends is not for it
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errs.New(errs.NotFound, "start the keeper of the lab in %s: %w", dir, err)
	}
	return func() error {
		_, said := io.WriteString(hold, "untied\n")
		if err := errors.Join(said, hold.Close(), cmd.Wait()); err != nil {
			return fmt.Errorf("end the keeper of the lab in %s: %w", dir, err)
		}
		return nil
	}, nil
}

// keep takes the lab in dir down when its input ends without a message, and removes what is
// empty then between it and the directory for temporary files.
func keep(in io.Reader, dir string) error {
	if word, err := io.ReadAll(in); err != nil || len(word) > 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	if err := Down(ctx, dir); err != nil {
		return err
	}
	top := filepath.Clean(os.TempDir())
	for above := filepath.Dir(dir); strings.HasPrefix(above, top+"/"); above = filepath.Dir(above) {
		if os.Remove(above) != nil {
			break // it has something else in it
		}
	}
	return nil
}
