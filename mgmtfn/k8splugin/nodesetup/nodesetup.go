// Package nodesetup puts onto a Kubernetes node what its container runtime needs to call
// Contiv: the CNI plugin contivk8s, and the network configuration that names it.
//
// The runtime takes a node for ready as soon as the configuration is there. It is
// therefore written when the agent can serve, after the plugin, and each of the two in
// one step, so that nobody ever sees half of it.
package nodesetup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
)

// Names of the files.
const (
	Plugin   = "contivk8s"
	Conflist = "10-contiv.conflist"
	oldConf  = "1-contiv.conf" // of earlier releases; it would come before ours
)

// Config says what is put where.
type Config struct {
	ConfDir string // of network configurations, such as /etc/cni/net.d; empty: none is written
	BinDir  string // of CNI plugins, such as /opt/cni/bin; empty: none is copied
	Source  string // file of the plugin to be copied
	// PluginDir is where the runtime finds plugins, ours and those of others.
	PluginDir string
	Socket    string // of the agent
	// Conf is the network configuration, as CheckConf takes it; empty: Contiv's own.
	Conf string
	// Ready says what keeps the agent from serving, or nil.
	Ready func() error
	Log   logrus.FieldLogger
}

// askAgain is how often Ready is asked: what it looks at tells nobody when it changes.
const askAgain = 200 * time.Millisecond

// Run writes what is to be there, when the agent can serve.
func Run(ctx context.Context, c Config) error {
	if c.ConfDir == "" && c.BinDir == "" {
		return nil
	}
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for c.Ready() != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	if c.BinDir != "" {
		if err := copyPlugin(c.Source, filepath.Join(c.BinDir, Plugin)); err != nil {
			return fmt.Errorf("install the CNI plugin: %w", err)
		}
	}
	if c.ConfDir != "" {
		if err := writeConf(ctx, c); err != nil {
			return fmt.Errorf("write the CNI configuration: %w", err)
		}
	}
	c.Log.WithFields(logrus.Fields{"configuration": c.ConfDir, "plugin": c.BinDir}).Info("CNI plugin and configuration installed")
	return nil
}

// content is that of the network configuration.
func (c Config) content(ctx context.Context) ([]byte, error) {
	if c.Conf != "" {
		return asList(c.Conf)
	}
	newest, err := speaksNewest(ctx, c.PluginDir, chained)
	if err != nil {
		c.Log.WithError(err).Warnf("cannot attach pods: there is no working CNI plugin %s in %s", chained, c.PluginDir)
	}
	return conflist(c.Socket, newest)
}

func writeConf(ctx context.Context, c Config) error {
	want, err := c.content(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(c.ConfDir, Conflist)
	if have, err := os.ReadFile(path); err != nil || string(have) != string(want) {
		if err := replace(path, 0o644, func(f *os.File) error { _, err := f.Write(want); return err }); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(c.ConfDir, oldConf)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func copyPlugin(source, target string) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	return replace(target, 0o755, func(f *os.File) error { _, err := io.Copy(f, from); return err })
}

// replace puts a file into the place of another at once, even one that is being run.
func replace(path string, mode os.FileMode, fill func(*os.File) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".contiv-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = errors.Join(fill(f), f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
