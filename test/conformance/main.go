package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/contiv/netplugin/test/lab"
)

// nodes is how many the cluster has: some specs need three.
const nodes = 3

// options of the command.
type options struct {
	bin, dir, results, document string
	focus                       string
	together                    int
	keep, resume                bool
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "`directory` of the binaries of make build")
	flag.StringVar(&o.dir, "dir", "/run/contiv-conformance", "`directory` of the lab")
	flag.StringVar(&o.results, "results", "dist/conformance", "`directory` for logs and reports of e2e.test")
	flag.StringVar(&o.document, "document", "docs/conformance.md", "`file` to write, if all specs were run")
	flag.StringVar(&o.focus, "focus", "", "run only specs that match this `expression`; nothing is written then")
	flag.IntVar(&o.together, "together", 2, "how many specs run at a time")
	flag.BoolVar(&o.keep, "keep", false, "use the lab that is in the directory if there is one, and leave it")
	flag.BoolVar(&o.resume, "resume", false, "go on with a run that was interrupted: what its reports tell is not run again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	focus, err := regexp.Compile(o.focus)
	if err != nil {
		return fmt.Errorf("-focus: %w", err)
	}
	suites, err := parseSuites(suitesFile)
	if err != nil {
		return err
	}
	built, err := exec.CommandContext(ctx, "scripts/k8s-tests", "--path").Output()
	if err != nil {
		return fmt.Errorf("scripts/k8s-tests: %w", err)
	}
	if o.results, err = filepath.Abs(o.results); err != nil {
		return err
	}
	if !o.resume {
		if err := os.RemoveAll(o.results); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	r := runner{tests: strings.TrimSpace(string(built)), results: o.results, suites: suites}
	if r.Lab, err = lab.Open(o.dir); err != nil || !o.keep {
		down, err := r.up(ctx, o)
		defer func() { err = errors.Join(err, down()) }()
		if err != nil {
			return err
		}
	}
	specs, err := r.list(ctx, focus)
	if err != nil {
		return err
	}
	earlier, err := r.earlier(specs)
	if err != nil {
		return err
	}
	specs = slices.DeleteFunc(specs, func(spec string) bool {
		return slices.ContainsFunc(earlier, func(res result) bool { return res.Spec == spec })
	})
	fmt.Printf("%d specs, besides %d of an earlier run; logs are in %s\n", len(specs), len(earlier), o.results)
	began, done := time.Now(), 0
	results, err := r.run(ctx, specs, o.together, func(res result) {
		done++
		fmt.Printf("%4d %s  %-15s %s %s\n", done, time.Since(began).Round(time.Second), res.Outcome, res.Spec, res.Why)
	})
	results = append(earlier, results...)
	fmt.Printf("%d passed, %d failed, %d not supported, %d cannot run here\n", count(results, passed), count(results, failed), count(results, unsupported), count(results, notRun))
	if err != nil {
		return err
	}
	if o.focus == "" {
		if err := write(o.document, report{lab.KubeVersion, nodes, suites, results}); err != nil {
			return err
		}
	}
	if n := count(results, failed); n > 0 {
		return fmt.Errorf("%d specs have failed", n)
	}
	return nil
}

// up brings the lab up; down takes it down, unless it is to be kept.
func (r *runner) up(ctx context.Context, o options) (down func() error, err error) {
	down = func() error { return nil }
	if !o.keep {
		untie, err := lab.Tie(filepath.Join(o.bin, "contiv-lab"), o.dir)
		if err != nil {
			return down, err
		}
		down = func() error { return errors.Join(lab.Down(context.WithoutCancel(ctx), o.dir), untie()) }
	}
	r.Lab, err = lab.Up(ctx, lab.Config{
		Dir: o.dir, Bin: o.bin, Hosts: nodes, Kubernetes: true, ServiceProxy: lab.ProxyFull, ClusterDNS: true, Progress: os.Stdout,
	})
	if err != nil {
		return down, err
	}
	return down, r.prepare(ctx)
}

func write(path string, r report) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.write(f)
}
