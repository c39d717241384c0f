package main

import (
	"context"
	"strings"

	"github.com/sirupsen/logrus"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/kubeapi"
	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/tokenreview"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
)

// accounts lets pods join by the tokens of their ServiceAccount.
type accounts struct{ kubernetes auth.Reviewer }

const accountPrefix = "system:serviceaccount:"

// Review implements ca.TokenReviewer.
func (a accounts) Review(ctx context.Context, token string) (account, node string, err error) {
	review, ok, err := a.kubernetes.Review(ctx, token)
	if err != nil {
		return "", "", err
	}
	name, isAccount := strings.CutPrefix(review.User, accountPrefix)
	if !ok || !isAccount {
		return "", "", errs.New(errs.Invalid, "Kubernetes does not accept it as that of a ServiceAccount for the audience %s", securityapi.Audience)
	}
	return strings.Replace(name, ":", "/", 1), review.Node, nil
}

// reviewer asks the API server about tokens, or is nil where there is none to ask.
func (o *options) reviewer(log logrus.FieldLogger) (ca.TokenReviewer, error) {
	if o.network.Mode != "kubernetes" || !o.secure.Mode.TLS() {
		return nil, nil
	}
	cfg, err := kubeapi.Load(o.kubeConfig)
	if err != nil || cfg == nil {
		log.WithError(err).Warn("no API server is configured; hosts need join tokens")
		return nil, nil
	}
	cfg.UserAgent = "contiv-netmaster"
	client, err := authclient.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return accounts{tokenreview.New(client.TokenReviews(), securityapi.Audience)}, nil
}
