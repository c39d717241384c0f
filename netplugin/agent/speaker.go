package agent

import (
	"context"
	"errors"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/retry"
)

// speaker is what is known of this host's BGP speaker. Its password may have to be asked
// for; until it is known the speaker stays as it was.
type speaker struct {
	rec      *state.Bgp    // nil: there is to be none
	secret   string        // names the password that is known; "" for none
	password string        // goes with secret
	wanted   chan struct{} // has an element when a password may be missing
}

func newSpeaker() speaker { return speaker{wanted: make(chan struct{}, 1)} }

// missing reports whether a password is to be asked for.
func (s *speaker) missing() bool {
	return s.rec != nil && s.rec.Secret != "" && s.rec.Password == "" && s.rec.Secret != s.secret
}

// declareSpeaker declares the speaker, or asks for its password first. The caller holds mu.
func (a *Agent) declareSpeaker() {
	s := &a.speaker
	if s.missing() {
		select {
		case s.wanted <- struct{}{}:
		default:
		}
		return
	}
	if s.rec == nil {
		a.cfg.Driver.Delete(drivers.KindSpeaker, "")
		return
	}
	rec := *s.rec
	if rec.Password == "" && rec.Secret != "" {
		rec.Password = s.password
	}
	c, err := asSpeaker(rec)
	if err != nil {
		a.cfg.Log.WithError(err).Error("a BGP speaker cannot be as it is configured")
	}
	a.cfg.Driver.Apply(drivers.Speaker{Config: c}) // which refuses it, and says so to those who ask
}

var errNoSecrets = errors.New("this agent has no certificate to ask for it with")

// slowestSecret bounds the time between two questions for a password.
const slowestSecret = 10 * time.Second

// askSecrets asks for the password of the speaker whenever it is missing, until ctx ends.
func (a *Agent) askSecrets(ctx context.Context) error {
	again, said := retry.New(200*time.Millisecond, slowestSecret), ""
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.speaker.wanted:
		case <-due:
		}
		due = nil
		err := a.askSecret(ctx)
		if err == nil {
			said = ""
			again.Reset()
			continue
		}
		due = time.After(again.Next())
		if err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			a.cfg.Log.WithError(err).Warn("cannot get the password of this host's BGP speaker; retrying")
		}
	}
}

// askSecret asks once, if a password is missing.
func (a *Agent) askSecret(ctx context.Context) error {
	a.mu.Lock()
	missing, want := a.speaker.missing(), ""
	if missing {
		want = a.speaker.rec.Secret
	}
	a.mu.Unlock()
	if !missing {
		return nil
	}
	if a.cfg.BGPSecret == nil {
		return errNoSecrets
	}
	password, err := a.cfg.BGPSecret(ctx, a.cfg.HostLabel)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.speaker.secret, a.speaker.password = want, password
	a.declareSpeaker() // asks again if it has changed meanwhile
	return nil
}
