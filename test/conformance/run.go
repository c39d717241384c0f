package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/test/lab"
)

//go:embed coredns.yaml
var corednsManifest string

// runner runs specs on a lab.
type runner struct {
	*lab.Lab
	tests   string // directory of e2e.test
	results string // directory of reports and logs
	suites  suites
}

// prepare gives the nodes the images and the cluster its names.
func (r runner) prepare(ctx context.Context) error {
	for _, h := range r.Hosts() {
		for _, condition := range []string{"create", "condition=Ready"} {
			if _, err := r.Kubectl(ctx, "wait", "--timeout=5m", "--for="+condition, "node/"+h.Name); err != nil {
				return err
			}
		}
	}
	archive := filepath.Join(r.results, "images.tar")
	if err := writeImages(r.tests, archive); err != nil {
		return fmt.Errorf("make images: %w", err)
	}
	for _, h := range r.Hosts() {
		if _, err := h.Output(ctx, "ctr", "-n", "k8s.io", "images", "import", archive); err != nil {
			return err
		}
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	if _, err := r.KubectlInput(ctx, corednsManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	_, err := r.Kubectl(ctx, "-n", "kube-system", "rollout", "status", "--timeout=5m", "deployment/coredns")
	return err
}

// e2e runs e2e.test on host1 with further arguments. What it says is in NAME.log; it
// returns the results in the report of that name.
func (r runner) e2e(ctx context.Context, name string, args ...string) ([]result, error) {
	log, err := os.Create(filepath.Join(r.results, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	junit := filepath.Join(r.results, name+".xml")
	ended := r.Hosts()[0].Run(ctx, lab.Stdio{Out: log, Err: log, Env: []string{"PATH=/opt/kubernetes/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}, append([]string{
		filepath.Join(r.tests, "e2e.test"), "--kubeconfig", "/etc/kubernetes/admin.kubeconfig", "--provider", "skeleton", "--num-nodes", strconv.Itoa(len(r.Hosts())),
		"--disable-log-dump", "--dump-logs-on-failure=false", "--ginkgo.no-color", "--ginkgo.timeout", "12h", "--ginkgo.junit-report", junit,
	}, args...)...)
	f, err := os.Open(junit)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("e2e.test has not reported, see %s: %w", log.Name(), err), ended)
	}
	defer f.Close()
	return readJUnit(f) // which says what has failed
}

// list returns the specs of the suites that match focus.
func (r runner) list(ctx context.Context, focus *regexp.Regexp) ([]string, error) {
	all, err := r.e2e(ctx, "list", "--ginkgo.dry-run", "--ginkgo.focus", `\[sig-network\]`)
	if err != nil {
		return nil, err
	}
	var specs []string
	for _, res := range all {
		if _, ours := r.suites.of(res.Spec); ours && focus.MatchString(res.Spec) {
			specs = append(specs, res.Spec)
		}
	}
	slices.Sort(specs)
	if len(specs) == 0 {
		return nil, fmt.Errorf("no spec of the suites matches %s", focus)
	}
	return slices.Compact(specs), nil
}

// earlier returns what the reports in the directory tell about specs.
func (r runner) earlier(specs []string) ([]result, error) {
	reports, err := filepath.Glob(filepath.Join(r.results, "batch-*.xml"))
	if err != nil {
		return nil, err
	}
	var all []result
	for _, path := range reports {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		got, err := readJUnit(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, res := range got {
			known := slices.ContainsFunc(all, func(o result) bool { return o.Spec == res.Spec })
			if slices.Contains(specs, res.Spec) && !known {
				all = append(all, quoted(res))
			}
		}
	}
	return all, nil
}

// quoted marks the reason for which a spec has not run as its own.
func quoted(res result) result {
	if res.Outcome == notRun {
		res.Why = fmt.Sprintf("%q", res.Why)
	}
	return res
}

// batch bounds the specs of one e2e.test, after which there is a report.
const batch = 4

// run runs specs, several at a time, but those alone that want to be. It tells of each
// on the way.
func (r runner) run(ctx context.Context, specs []string, together int, tell func(result)) ([]result, error) {
	var all []result
	var alone, others []string
	for _, spec := range specs {
		switch o, why := r.suites.whyNot(spec); {
		case why != "":
			all = append(all, result{spec, o, why})
		case strings.Contains(spec, "[Serial]") || strings.Contains(spec, "[Disruptive]"):
			alone = append(alone, spec)
		default:
			others = append(others, spec)
		}
	}
	before, err := filepath.Glob(filepath.Join(r.results, "batch-*.log"))
	if err != nil {
		return nil, err
	}
	number := len(before) // of an earlier run
	var failures error
	for _, turn := range []struct {
		specs    []string
		together int
	}{{others, together}, {alone, 1}} {
		done := make(chan []result)
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(turn.together)
		go func() {
			for chunk := range slices.Chunk(turn.specs, batch) {
				number++
				name := fmt.Sprintf("batch-%03d", number)
				g.Go(func() error {
					got, err := r.some(gctx, name, chunk)
					if err != nil {
						return err
					}
					done <- got
					return nil
				})
			}
			failures = g.Wait()
			close(done)
		}()
		for got := range done {
			for _, res := range got {
				tell(res)
			}
			all = append(all, got...)
		}
		if failures != nil {
			return all, failures
		}
	}
	return all, nil
}

// some runs these specs one after the other. One that the report knows nothing of has
// failed, as has all that is wrong around them.
func (r runner) some(ctx context.Context, name string, specs []string) ([]result, error) {
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = regexp.QuoteMeta(spec)
	}
	began := time.Now()
	// Before the name stands that of the whole suite.
	got, err := r.e2e(ctx, name, "--ginkgo.focus", "("+strings.Join(names, "|")+")$")
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	known := map[string]bool{}
	var around string
	out := got[:0]
	for _, res := range got {
		known[res.Spec] = true
		if !slices.Contains(specs, res.Spec) {
			around = res.Spec + ": " + res.Why
			continue
		}
		out = append(out, quoted(res))
	}
	if err != nil {
		around = err.Error()
	}
	for _, spec := range specs {
		if !known[spec] {
			out = append(out, result{spec, failed, "no result after " + time.Since(began).Round(time.Second).String() + " " + around})
		}
	}
	return out, nil
}
