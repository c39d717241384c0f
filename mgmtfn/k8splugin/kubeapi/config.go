package kubeapi

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/utils/errs"
)

// DefaultConfig is the file with the API server's address and credentials.
const DefaultConfig = "/var/contiv/config/contiv.json"

const (
	serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	userAgent           = "contiv-netplugin"
)

// file is the content of DefaultConfig.
type file struct {
	Server string `json:"K8S_API_SERVER"`
	CA     string `json:"K8S_CA"`
	Key    string `json:"K8S_KEY"`
	Cert   string `json:"K8S_CERT"`
	Token  string `json:"K8S_TOKEN"`
	// Subnets are where Services have their addresses, separated by commas.
	Subnets string `json:"SVC_SUBNET"`
}

// read reads the file at path; found is false when there is none.
func read(path string) (c file, found bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, errs.New(errs.Invalid, "read the API server's configuration: %w", err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, false, errs.New(errs.Invalid, "%s: expected a JSON object with K8S_API_SERVER and credentials: %w", path, err)
	}
	return c, true, nil
}

// unthrottled keeps client-go from limiting itself to five requests a second: a node that
// starts a hundred pods asks two things for each. The API server has its own limits
// (priority and fairness), and the container runtime bounds how many it starts at a time.
const unthrottled = -1

// Load reads where the API server is: from a file, or, when there is none, from what
// Kubernetes gives a pod. It returns nil without an error when neither says anything.
func Load(path string) (*rest.Config, error) {
	c, found, err := read(path)
	if err != nil {
		return nil, err
	}
	if !found {
		cfg, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, nil
		}
		if err != nil {
			return nil, errs.New(errs.Invalid, "%s is absent, and the service account cannot be used: %w", path, err)
		}
		cfg.UserAgent, cfg.QPS = userAgent, unthrottled
		return cfg, nil
	}
	if c.Server == "" {
		return nil, errs.New(errs.Invalid, "%s: K8S_API_SERVER is empty, expected https://host:port", path)
	}
	cfg := &rest.Config{
		Host: c.Server, UserAgent: userAgent, QPS: unthrottled,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key},
	}
	switch token := strings.TrimSpace(c.Token); {
	case token != "":
		cfg.BearerToken = token
	case c.Cert == "":
		cfg.BearerTokenFile = serviceAccountToken // re-read by the client as it rotates
	}
	if _, err := rest.HTTPClientFor(cfg); err != nil {
		return nil, errs.New(errs.Invalid, "%s: %w", path, err)
	}
	return cfg, nil
}

// ServiceSubnets reads where the cluster has the addresses of Services, as far as the
// file says so: the other sources do not.
func ServiceSubnets(path string) ([]netip.Prefix, error) {
	c, _, err := read(path)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for text := range strings.SplitSeq(c.Subnets, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, errs.New(errs.Invalid, "%s: SVC_SUBNET %q: expected subnets like 10.96.0.0/12, separated by commas", path, c.Subnets)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
