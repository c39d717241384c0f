package nodeproxy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/knftables"
)

// Remove removes our table, and reports whether there was one. With dryRun it only
// looks.
func Remove(ctx context.Context, dryRun bool) (bool, error) {
	nft, err := knftables.New(knftables.InetFamily, Table)
	if errors.Is(err, exec.ErrNotFound) {
		return false, nil // without nft there is no table of ours
	}
	if err != nil {
		return false, err
	}
	switch _, err := nft.List(ctx, "chains"); {
	case knftables.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the nftables table %s: %w", Table, err)
	case dryRun:
		return true, nil
	}
	tx := nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := nft.Run(ctx, tx); err != nil {
		return true, fmt.Errorf("remove the nftables table %s: %w", Table, err)
	}
	return true, nil
}

// FormerChain is what the first Contiv translated node ports in: a chain of iptables'
// table nat.
const FormerChain = "CONTIV-NODEPORT"

// RemoveFormer removes FormerChain, and reports whether there was one. With dryRun it
// only looks.
func RemoveFormer(ctx context.Context, dryRun bool) (bool, error) {
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "iptables", append([]string{"-w", "5", "-t", "nat"}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("iptables -t nat %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
		}
		return string(out), nil
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return false, nil // without iptables there is no chain of its
	}
	rules, err := run("-S")
	if err != nil {
		return false, nil // an iptables that does not work here has no chains here
	}
	if !strings.Contains(rules, "-N "+FormerChain+"\n") || dryRun {
		return strings.Contains(rules, "-N "+FormerChain+"\n"), nil
	}
	for rule := range strings.Lines(rules) {
		words := strings.Fields(rule)
		if len(words) > 2 && words[0] == "-A" && strings.HasSuffix(strings.TrimSpace(rule), "-j "+FormerChain) {
			if _, err := run(append([]string{"-D"}, words[1:]...)...); err != nil {
				return true, err
			}
		}
	}
	for _, args := range [][]string{{"-F", FormerChain}, {"-X", FormerChain}} {
		if _, err := run(args...); err != nil {
			return true, err
		}
	}
	return true, nil
}

// formerTimeout bounds the search for the chain.
const formerTimeout = 20 * time.Second

// removeFormer is RemoveFormer at the start of a proxy, which goes on without.
func removeFormer(ctx context.Context, log logrus.FieldLogger) {
	ctx, cancel := context.WithTimeout(ctx, formerTimeout)
	defer cancel()
	found, err := RemoveFormer(ctx, false)
	switch {
	case err != nil:
		log.WithError(err).Warn("cannot remove the node ports of an earlier Contiv from iptables")
	case found:
		log.WithField("chain", FormerChain).Info("removed the node ports of an earlier Contiv from iptables")
	}
}
