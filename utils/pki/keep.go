package pki

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/retry"
)

// Keeper keeps the certificate of credentials fresh.
type Keeper struct {
	Credentials *Credentials
	// Renew gets a new certificate and puts it into the credentials.
	Renew func(context.Context) error
	// Advice is what to do when a certificate cannot be renewed, for the log.
	Advice string
	Log    logrus.FieldLogger
}

// Keep renews the certificate after two thirds of its time, until ctx ends. What fails is
// repeated, with one line in the log when that begins and one when nine tenths of the time
// have passed. A thousand hosts do not renew in step.
func (k Keeper) Keep(ctx context.Context) {
	for k.wait(ctx) {
		k.renew(ctx)
	}
}

// forever is longer than any certificate is waited for.
const forever = 100 * 365 * 24 * time.Hour

// wait returns when the certificate is due, and false when ctx ends first.
func (k Keeper) wait(ctx context.Context) bool {
	for {
		changed, leaf := k.Credentials.Changed(), k.Credentials.Leaf()
		timer := time.NewTimer(forever)
		if leaf != nil {
			early := time.Duration(rand.Int64N(int64(leaf.NotAfter.Sub(IssuedAt(leaf))/20) + 1))
			timer.Reset(time.Until(RenewAt(leaf)) - early)
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
			return ctx.Err() == nil
		case <-changed:
			timer.Stop()
		}
	}
}

// renew tries until the certificate is another one.
func (k Keeper) renew(ctx context.Context) {
	old := k.Credentials.Leaf()
	life := old.NotAfter.Sub(IssuedAt(old))
	pauses := retry.New(min(life/100, time.Minute), min(life/20, 10*time.Minute))
	log := k.Log.WithField("certificate", PeerOf(old).String()).WithField("expires", old.NotAfter.UTC().Format(time.RFC3339))
	warned, urgent := false, false
	for {
		err := k.Renew(ctx)
		if leaf := k.Credentials.Leaf(); err == nil && leaf != nil && !leaf.Equal(old) {
			log.Debug("certificate renewed")
			return
		}
		left := time.Until(old.NotAfter)
		switch {
		case ctx.Err() != nil:
			return
		case left < life/10 && !urgent:
			urgent, warned = true, true
			log.WithError(err).Errorf("the certificate is about to expire and cannot be renewed; %s", k.Advice)
		case !warned:
			warned = true
			log.WithError(err).Warn("cannot renew the certificate; retrying")
		}
		if !pauses.Wait(ctx) {
			return
		}
	}
}
