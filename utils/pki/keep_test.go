package pki_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

// keep runs a Keeper over simulated time, and returns what it has logged.
func keep(t *testing.T, valid, length time.Duration, renew func(c *pki.Credentials, a *pki.Authority) error) (*pki.Credentials, string) {
	t.Helper()
	a := authority(t)
	c := credentials(t, issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent, Valid: valid}, time.Now()))
	log, said := newLog()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	pki.Keeper{
		Credentials: c, Advice: "do this", Log: log,
		Renew: func(context.Context) error { return renew(c, a) },
	}.Keep(ctx)
	return c, said.String()
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, last := 0, time.Now()
		c, said := keep(t, pki.DefaultValid, 365*24*time.Hour, func(c *pki.Credentials, a *pki.Authority) error {
			after := time.Since(last)
			if two := pki.DefaultValid * 2 / 3; after > two || after < two-pki.DefaultValid/19 {
				t.Errorf("renewed after %s, expected about %s", after, two)
			}
			n, last = n+1, time.Now()
			s := issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now())
			return c.SetPair(s.Cert, s.Key)
		})
		if n < 6 || n > 7 || time.Until(c.Leaf().NotAfter) < pki.DefaultValid/3-time.Minute {
			t.Errorf("renewed %d times in a year", n)
		}
		if said != "" {
			t.Errorf("it is worth no word: %s", said)
		}
	})
}

// TestKeepFails: two lines, whatever the number of tries; when it works again all is well.
func TestKeepFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		_, said := keep(t, pki.DefaultValid, 89*24*time.Hour, func(*pki.Credentials, *pki.Authority) error {
			tries++
			return errors.New("no netmaster answers")
		})
		if tries < 100 {
			t.Errorf("%d tries in 29 days", tries)
		}
		if strings.Count(said, "\n") != 2 || strings.Count(said, "level=warning") != 1 || strings.Count(said, "level=error") != 1 {
			t.Errorf("expected a warning and an error, found:\n%s", said)
		}
		for _, want := range []string{"about to expire and cannot be renewed; do this", "no netmaster answers", "certificate=\"agent node1\"", "expires="} {
			if !strings.Contains(said, want) {
				t.Errorf("the log does not say %q:\n%s", want, said)
			}
		}
	})
}

// TestKeepNotInStep: what was made at the same time is not renewed at the same time.
func TestKeepNotInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hours := map[int]int{}
		for range 50 {
			began := time.Now()
			keep(t, pki.DefaultValid, 61*24*time.Hour, func(c *pki.Credentials, a *pki.Authority) error {
				hours[int(time.Since(began).Hours())]++
				s := issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now())
				return c.SetPair(s.Cert, s.Key)
			})
		}
		if len(hours) < 20 {
			t.Errorf("50 hosts renew within %d different hours", len(hours))
		}
	})
}

// TestKeepBegins when there is a certificate, and follows one that somebody else has set.
func TestKeepBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := pki.NewCredentials(), authority(t)
		log, _ := newLog()
		var renewed atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			pki.Keeper{Credentials: c, Log: log, Renew: func(context.Context) error {
				renewed.Add(1)
				return issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent}, time.Now()).Use(c)
			}}.Keep(ctx)
		}()
		time.Sleep(365 * 24 * time.Hour)
		if err := issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent, Valid: time.Hour}, time.Now()).Use(c); err != nil {
			t.Fatal(err)
		}
		if renewed.Load() != 0 {
			t.Error("renewed without a certificate")
		}
		time.Sleep(time.Hour)
		if renewed.Load() != 1 {
			t.Errorf("renewed %d times, expected once", renewed.Load())
		}
		cancel()
		<-done
	})
}
