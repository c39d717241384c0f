// Package kubeca tells the pods of agents which certificate authority the cluster has, by a
// ConfigMap of Kubernetes that they mount: so that they believe nobody else when they join.
package kubeca

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

// File is the key of the ConfigMap that has the authorities, in PEM.
const File = "ca.crt"

// compareEvery is how often the ConfigMap is looked at even if nothing has changed here:
// somebody else may have changed it.
const compareEvery = time.Minute

// Publisher keeps one ConfigMap current. It must exist, so that netmaster needs no right to
// create any.
type Publisher struct {
	Client coreclient.ConfigMapsGetter
	// Namespace and Name are those of the ConfigMap.
	Namespace, Name string
	Credentials     *pki.Credentials
	Log             logrus.FieldLogger
}

// ParseName splits "namespace/name". The error's kind is Invalid.
func ParseName(text string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errs.New(errs.Invalid, "%q: expected namespace/name", text)
	}
	return namespace, name, nil
}

// Run keeps the ConfigMap current until ctx ends.
func (p Publisher) Run(ctx context.Context) {
	pauses, said := retry.New(time.Second, 30*time.Second), ""
	log := p.Log.WithField("configmap", p.Namespace+"/"+p.Name)
	for ctx.Err() == nil {
		changed := p.Credentials.Changed()
		wrote, err := p.publish(ctx)
		if err != nil {
			if err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				log.WithError(err).Warn("cannot publish the certificate authority, new hosts cannot join; retrying")
			}
			pauses.Wait(ctx)
			continue
		}
		pauses.Reset()
		said = ""
		if wrote {
			log.Info("published the certificate authority")
		}
		wait := time.NewTimer(compareEvery)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-wait.C:
		}
		wait.Stop()
	}
}

// publish writes the authorities unless they are there.
func (p Publisher) publish(ctx context.Context) (wrote bool, err error) {
	want := string(pki.EncodeCertificates(p.Credentials.Roots()...))
	maps := p.Client.ConfigMaps(p.Namespace)
	now, err := maps.Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return false, errs.New(errs.Unavailable, "%w", err)
	}
	if now.Data[File] == want {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{File: want}})
	if err != nil {
		return false, errs.New(errs.Internal, "%w", err)
	}
	if _, err := maps.Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "contiv-netmaster"}); err != nil {
		return false, errs.New(errs.Unavailable, "%w", err)
	}
	return true, nil
}
