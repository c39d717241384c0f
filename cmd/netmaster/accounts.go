package main

import (
	"context"
	"strings"

	"github.com/sirupsen/logrus"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/kubeapi"
	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/kubeca"
	"github.com/contiv/netplugin/netmaster/tokenreview"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
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

// kubernetes sets up what needs the API server, where there is one to ask: pods that join by
// their tokens, and the ConfigMap that tells them the certificate authority.
func (o *options) kubernetes(log logrus.FieldLogger) error {
	if o.network.Mode != "kubernetes" || !o.secure.Mode.TLS() {
		return nil
	}
	cfg, err := kubeapi.Load(o.kubeConfig)
	if err != nil || cfg == nil {
		log.WithError(err).Warn("no API server is configured; hosts need join tokens")
		return nil
	}
	cfg.UserAgent = "contiv-netmaster"
	reviews, err := authclient.NewForConfig(cfg)
	if err != nil {
		return err
	}
	o.secure.reviewer = accounts{tokenreview.New(reviews.TokenReviews(), securityapi.Audience)}
	if o.secure.configMap == "" {
		return nil
	}
	core, err := coreclient.NewForConfig(cfg)
	if err != nil {
		return err
	}
	namespace, name, err := kubeca.ParseName(o.secure.configMap)
	o.secure.publish = func(ctx context.Context, creds *pki.Credentials) {
		kubeca.Publisher{Client: core, Namespace: namespace, Name: name, Credentials: creds, Log: log.WithField("part", "ca")}.Run(ctx)
	}
	return err
}
