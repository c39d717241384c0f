package k8splugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/utils/errs"
)

// DefaultAPIConfig is the file with the API server's address and credentials.
const DefaultAPIConfig = "/var/contiv/config/contiv.json"

// Labels of a pod that say where it belongs.
const (
	labelTenant  = "io.contiv.tenant"
	labelNetwork = "io.contiv.network"
	labelGroup   = "io.contiv.net-group"
)

const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// apiConfig is the content of the file.
type apiConfig struct {
	Server string `json:"K8S_API_SERVER"`
	CA     string `json:"K8S_CA"`
	Key    string `json:"K8S_KEY"`
	Cert   string `json:"K8S_CERT"`
	Token  string `json:"K8S_TOKEN"`
}

// PlacerFromFile returns a function that finds a pod's place by asking the API server,
// or nil when no file configures one: places then come from the network configuration
// and CNI_ARGS alone.
func PlacerFromFile(path string, log logrus.FieldLogger) (func(context.Context, cniapi.PodRequest) (Place, error), error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		log.WithField("file", path).Info("no API server is configured; tenant, network and group come from the CNI configuration")
		return nil, nil
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "read the API server's configuration: %w", err)
	}
	var c apiConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, errs.New(errs.Invalid, "%s: expected a JSON object with K8S_API_SERVER and credentials: %w", path, err)
	}
	if c.Server == "" {
		return nil, errs.New(errs.Invalid, "%s: K8S_API_SERVER is empty, expected https://host:port", path)
	}
	cfg := &rest.Config{
		Host: c.Server, Timeout: 10 * time.Second, UserAgent: "contiv-netplugin",
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key},
	}
	switch token := strings.TrimSpace(c.Token); {
	case token != "":
		cfg.BearerToken = token
	case c.Cert == "":
		cfg.BearerTokenFile = serviceAccountToken // re-read by the client as it rotates
	}
	// Labels and UID are all that is needed; the client of the whole API would cost the
	// agent tens of megabytes.
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%s: %w", path, err)
	}
	return func(ctx context.Context, req cniapi.PodRequest) (Place, error) {
		return podPlace(ctx, client, req)
	}, nil
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podPlace reads the labels of the very pod the call is about: a pod of the same name
// but another UID is not it.
func podPlace(ctx context.Context, api metadata.Interface, req cniapi.PodRequest) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pod, err := api.Resource(pods).Namespace(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Place{}, errs.New(errs.NotFound, "pod %s/%s: page not found", req.Namespace, req.Name)
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return Place{}, errs.New(errs.Invalid, "pod %s/%s: access denied by the API server", req.Namespace, req.Name)
	case err != nil:
		return Place{}, errs.Wrap(errs.Unavailable, fmt.Errorf("pod %s/%s: %w", req.Namespace, req.Name, err))
	case req.PodUID != "" && string(pod.UID) != req.PodUID:
		return Place{}, errs.New(errs.Conflict, "pod %s/%s has UID %s now, the call is for %s", req.Namespace, req.Name, pod.UID, req.PodUID)
	}
	return Place{Tenant: pod.Labels[labelTenant], Network: pod.Labels[labelNetwork], Group: pod.Labels[labelGroup]}, nil
}
