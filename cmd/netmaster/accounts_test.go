package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/tlsport"
)

// reviews are the tokens that Kubernetes knows; "down" is one that it cannot be asked about.
type reviews map[string]auth.Review

func (r reviews) Review(_ context.Context, token string) (auth.Review, bool, error) {
	if token == "down" {
		return auth.Review{}, false, errs.Wrap(errs.Unavailable, errors.New("no API server"))
	}
	review, ok := r[token]
	return review, ok, nil
}

// TestAccounts: only a ServiceAccount is one.
func TestAccounts(t *testing.T) {
	a := accounts{reviews{
		"pod":  {User: "system:serviceaccount:kube-system:contiv-netplugin", Node: "node1"},
		"user": {User: "jane"},
	}}
	if account, node, err := a.Review(t.Context(), "pod"); account != "kube-system/contiv-netplugin" || node != "node1" || err != nil {
		t.Errorf("%q on %q, %v", account, node, err)
	}
	for token, kind := range map[string]errs.Kind{"user": errs.Invalid, "forged": errs.Invalid, "down": errs.Unavailable} {
		if account, _, err := a.Review(t.Context(), token); !errs.Is(err, kind) || account != "" {
			t.Errorf("token %s: %q, %v; expected an error of kind %s", token, account, err, kind)
		}
	}
}

// TestAccountsOnlyWithKubernetes and TLS; without an API server hosts need join tokens.
func TestAccountsOnlyWithKubernetes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	log := logrus.New()
	log.SetOutput(t.Output())
	for _, tt := range []struct {
		mode string
		tls  tlsport.Mode
	}{{"docker", tlsport.Require}, {"kubernetes", tlsport.Off}, {"kubernetes", tlsport.Require}} {
		o := &options{kubeConfig: t.TempDir() + "/none"}
		o.network.Mode, o.secure.Mode = tt.mode, tt.tls
		o.secure.configMap = "kube-system/contiv-ca"
		if err := o.kubernetes(log); o.secure.reviewer != nil || o.secure.publish != nil || err != nil {
			t.Errorf("mode %s, --tls %s: %v, %v; expected none", tt.mode, tt.tls, o.secure.reviewer, err)
		}
	}
	var said strings.Builder
	log.SetOutput(&said)
	o := &options{kubeConfig: t.TempDir() + "/none"}
	o.network.Mode, o.secure.Mode = "kubernetes", tlsport.Require
	if _ = o.kubernetes(log); !strings.Contains(said.String(), "hosts need join tokens") {
		t.Errorf("the log does not say so: %s", said.String())
	}
}
