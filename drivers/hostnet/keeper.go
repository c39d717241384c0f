package hostnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/utils/retry"
)

// Config says what a Keeper works with.
type Config struct {
	// Plan returns how everything is to be; it is called for every round. Without ok it is not
	// known yet, and nothing is touched.
	Plan func() (p Plan, ok bool)
	// Note keeps the former value of a kernel setting that is about to change and that
	// will not go away with our links; Restore takes it back.
	Note func(path, old string) error
	Log  logrus.FieldLogger
}

// Keeper keeps the host as planned. Make it with New.
type Keeper struct {
	cfg  Config
	kick chan struct{}

	// These are Run's. The rules that were there when they were last looked at, and the
	// generation of the rule set then. Looking costs processes, too much for every container
	// and every few seconds.
	rules  []rule
	looked time.Time
	at     uint32
	said   string // error that has been logged

	mu  sync.Mutex
	err error
}

// New makes a Keeper; it does nothing before Run.
func New(cfg Config) *Keeper {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	return &Keeper{cfg: cfg, kick: make(chan struct{}, 1), err: errors.New("the host's side has not been set up yet")}
}

// Kick says that the plan has changed.
func (k *Keeper) Kick() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Err returns nil when everything is as planned, or what is amiss.
func (k *Keeper) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// lookAgain is how often everything is looked at without a reason: others may have
// flushed our rules or routes.
const lookAgain = 10 * time.Second

// How long to wait after a failure.
const firstRetry, longestRetry = 200 * time.Millisecond, lookAgain / 2

// Run works until ctx ends. What it has set up stays.
func (k *Keeper) Run(ctx context.Context) error {
	events := make(chan netlink.LinkUpdate, 64)
	stop := make(chan struct{})
	defer close(stop)
	if err := netlink.LinkSubscribe(events, stop); err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	again := retry.New(firstRetry, longestRetry)
	for {
		wait := lookAgain
		plan, ok := k.cfg.Plan()
		if ok && k.round(ctx, plan) != nil {
			wait = again.Next()
		} else {
			again.Reset()
		}
		timer := time.NewTimer(wait)
		for relevant := false; !relevant; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			case <-k.kick:
				relevant = true
			case <-timer.C:
				relevant = true
			case ev, ok := <-events:
				if !ok {
					events = nil // the clock goes on
					continue
				}
				_, relevant = plan.link(ev.Link.Attrs().Name)
			}
		}
		timer.Stop()
	}
}

// round brings the plan about.
func (k *Keeper) round(ctx context.Context, plan Plan) error {
	err := k.apply(ctx, plan)
	k.mu.Lock()
	// A link may be missing because it is just being made: say what lasts.
	lasts := k.err != nil && err != nil && k.err.Error() == err.Error()
	k.err = err
	k.mu.Unlock()
	if err == nil {
		k.said = ""
		return nil
	}
	if ctx.Err() == nil && lasts && k.said != err.Error() {
		k.said = err.Error()
		k.cfg.Log.WithError(err).Warn("cannot configure the host's side of the container network; retrying")
	}
	return err
}

// apply does as much of the plan as can be done.
func (k *Keeper) apply(ctx context.Context, plan Plan) error {
	sys := sysctls{note: k.cfg.Note}
	links := map[string]netlink.Link{}
	plan, err := plan.checked()
	failed := []error{err}
	for _, want := range plan.Links {
		link, err := applyLink(want, sys)
		if err != nil {
			failed = append(failed, err)
		}
		if link != nil {
			links[want.Name] = link
		}
	}
	failed = append(failed, applyRoutes(plan.Routes, links), sys.forward(plan), k.applyRules(ctx, plan.rules()))
	return errors.Join(failed...)
}

func (k *Keeper) applyRules(ctx context.Context, want []rule) error {
	known := !k.looked.IsZero() && slices.Equal(want, k.rules)
	if known && time.Since(k.looked) < lookAgain {
		return nil
	}
	now := generation() // before the rules are read, so that nothing is missed
	if known && now != 0 && now == k.at {
		k.looked = time.Now()
		return nil
	}
	if err := applyRules(ctx, want); err != nil {
		k.looked = time.Time{}
		return err
	}
	k.rules, k.looked, k.at = want, time.Now(), now
	return nil
}
