package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/kubeapi"
	"github.com/contiv/netplugin/utils/cliconf"
)

func (o *options) kubeFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "k8s-config", Category: "control", Value: kubeapi.DefaultConfig, Destination: &o.kubeConfig, Sources: env.Var("K8S_CONFIG"),
		Usage: "kubeconfig `file` of the API server; by default that of the pod in which netmaster runs (mode kubernetes)",
	}
}

func (o *options) validateKube() error {
	if !filepath.IsAbs(o.kubeConfig) {
		return cliconf.Usagef("--k8s-config %q: expected an absolute path", o.kubeConfig)
	}
	return nil
}

// nodes are those of the cluster of Kubernetes, or nil when there is none to ask.
func (o *options) nodes(log logrus.FieldLogger) (*kubeapi.Nodes, error) {
	if o.network.Mode != "kubernetes" {
		return nil, nil
	}
	cfg, err := kubeapi.Load(o.kubeConfig)
	if _, missing := os.Stat(o.kubeConfig); err != nil && !errors.Is(missing, os.ErrNotExist) {
		return nil, err // what somebody has configured
	}
	if cfg == nil { // or its pod has no service account, as in earlier manifests
		if err != nil {
			log = log.WithError(err)
		}
		log.WithField("file", o.kubeConfig).Warn("no API server is configured; endpoints of deleted Nodes are kept for the grace period")
		return nil, nil
	}
	cfg.UserAgent = "contiv-netmaster"
	return kubeapi.NewNodes(cfg, "", log.WithField("part", "nodes"))
}
