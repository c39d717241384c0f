package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/nodeproxy"
	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/k8splugin"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/kubeapi"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/nodesetup"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/services"
	"github.com/contiv/netplugin/mgmtfn/k8spolicy"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/errs"
)

// kubeOptions say how the agent works with Kubernetes.
type kubeOptions struct {
	config, node, proxy string
	tenancy, unknown    string
	confDir, binDir     string
	conf                string
}

const (
	proxyFull = "full"
	proxyPods = "pods"
	proxyOff  = "off"

	unknownHold = "hold"
	unknownOpen = "open"
)

func (o *kubeOptions) flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{
			Name: "k8s-config", Value: kubeapi.DefaultConfig, Destination: &o.config, Sources: env.Var("K8S_CONFIG"),
			Usage: "kubeconfig `file` of the API server; by default that of the pod in which netplugin runs (mode kubernetes and test)",
		},
		&cli.StringFlag{
			Name: "k8s-node", Destination: &o.node, Sources: env.Var("K8S_NODE"),
			Usage: "`name` of this host's Node (default: the label of the host)",
		},
		&cli.StringFlag{
			Name: "cni-config", Destination: &o.conf, Sources: env.Var("CNI_CONFIG"),
			Usage: "CNI configuration to write instead of Contiv's own, as `JSON`: a network or a list of plugins (mode kubernetes)",
		},
		&cli.StringFlag{
			Name: "service-proxy", Value: proxyPods, Destination: &o.proxy, Sources: env.Var("SERVICE_PROXY"),
			Usage: "who load-balances Services: full: Contiv, instead of kube-proxy; pods: Contiv for connections of pods, kube-proxy for others; off: kube-proxy (mode kubernetes)",
		},
		&cli.StringFlag{
			Name: "tenancy", Value: string(k8splugin.Open), Destination: &o.tenancy, Sources: env.Var("TENANCY"),
			Usage: "open: pods select their network and group, and their tenant unless the namespace sets one; strict: they get what their namespace sets, or allows in its annotation " + k8splugin.AllowedAnnotation + " (mode kubernetes)",
		},
		&cli.StringFlag{
			Name: "unknown-policies", Value: unknownHold, Destination: &o.unknown, Sources: env.Var("UNKNOWN_POLICIES"),
			Usage: "new pods, until the agent has received all pods and network policies from the API server: hold: they wait; open: they start, not subject to network policies until these are known (mode kubernetes)",
		},
	}, o.nodeFlags()...)
}

// nodeFlags say where the files are that make a node ready.
func (o *kubeOptions) nodeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "cni-conf-dir", Destination: &o.confDir, Sources: env.Var("CNI_CONF_DIR"),
			Usage: "`directory` for the CNI configuration, written when containers can be attached, which makes the node ready; by default none is written (mode kubernetes)",
		},
		&cli.StringFlag{
			Name: "cni-bin-dir", Destination: &o.binDir, Sources: env.Var("CNI_BIN_DIR"),
			Usage: "`directory` to copy contivk8s to, from the directory of netplugin; by default it is not copied (mode kubernetes)",
		},
	}
}

func (o *kubeOptions) validate() error {
	for flag, path := range map[string]string{"--k8s-config": o.config, "--cni-conf-dir": o.confDir, "--cni-bin-dir": o.binDir} {
		if !filepath.IsAbs(path) && (path != "" || flag == "--k8s-config") {
			return cliconf.Usagef("%s %q: expected an absolute path", flag, path)
		}
	}
	if err := nodesetup.CheckConf(o.conf); err != nil {
		return cliconf.Usagef("--cni-config: %w", err)
	}
	if err := cliconf.OneOf("--tenancy", &o.tenancy, string(k8splugin.Open), string(k8splugin.Strict)); err != nil {
		return err
	}
	if err := cliconf.OneOf("--unknown-policies", &o.unknown, unknownHold, unknownOpen); err != nil {
		return err
	}
	return cliconf.OneOf("--service-proxy", &o.proxy, proxyFull, proxyPods, proxyOff)
}

// runsCNI reports whether CNI runtimes are served.
func (o *options) runsCNI() bool { return o.network.Mode == "kubernetes" || o.network.Mode == "test" }

// endpointPolicies reports whether pods are subject to network policies.
func (o *options) endpointPolicies() bool { return o.network.Mode == "kubernetes" }

// sources are those that an API server's lists are, besides the store.
func (o *options) sources(apiServer string) (out []drivers.Source) {
	if apiServer == "" {
		return nil
	}
	if o.endpointPolicies() {
		out = append(out, drivers.SourcePolicies)
	}
	if o.kube.proxy != proxyOff {
		out = append(out, drivers.SourceServices)
	}
	return out
}

// kubernetes is what the agent has to do with an API server; nil when there is none. Its
// methods may be called on nil.
type kubernetes struct {
	networks *k8splugin.PodNetworks
	pods     func(context.Context) (map[string]bool, error)
	services *services.Watcher     // nil: somebody else leads to Services
	policies *k8spolicy.Controller // nil: there are none
	nodes    *kubeapi.Nodes        // knows of this host's
	node     string                // its name
	proxy    *nodeproxy.Proxy      // nil: somebody else leads this node to Services
	log      logrus.FieldLogger
}

// apiServer is the URL of the API server; "" when there is none.
func (o *options) apiServer() (string, error) {
	if !o.runsCNI() {
		return "", nil
	}
	cfg, err := kubeapi.Load(o.kube.config)
	if err != nil || cfg == nil {
		return "", err
	}
	return cfg.Host, nil
}

func (o *options) kubernetes(driver k8spolicy.Driver, log *logrus.Logger) (*kubernetes, error) {
	if !o.runsCNI() {
		return nil, nil
	}
	cfg, err := kubeapi.Load(o.kube.config)
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		log.WithField("file", o.kube.config).Info("no API server is configured; tenant, network and group are taken from the CNI configuration")
		return nil, nil
	}
	k := &kubernetes{log: log.WithField("part", "services"), node: cmp.Or(o.kube.node, o.host)}
	if k.nodes, err = kubeapi.NewNodes(cfg, k.node, log.WithField("part", "node")); err != nil {
		return nil, err
	}
	if k.networks, err = k8splugin.NewPodNetworks(cfg, k.node, k8splugin.Tenancy(o.kube.tenancy), log.WithField("part", "cni")); err != nil {
		return nil, err
	}
	if k.pods, err = k8splugin.NewPods(cfg, k.node); err != nil {
		return nil, err
	}
	client, err := kubeapi.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	if o.endpointPolicies() {
		k.policies = k8spolicy.New(k8spolicy.Config{
			Pods: client.Pods(), Namespaces: client.Namespaces(), NetworkPolicies: client.NetworkPolicies(),
			Driver: driver, Host: o.host, StartWithout: o.kube.unknown == unknownOpen, Log: log.WithField("part", "policies"),
		})
	}
	subnets, err := o.serviceSubnets()
	if err != nil {
		return nil, err
	}
	driver.Apply(drivers.ClusterReach{Services: subnets})
	if o.kube.proxy == proxyOff {
		return k, nil
	}
	to := services.Config{
		HostLabel: o.host, NodeName: k.node, Services: client.Services(), EndpointSlices: client.EndpointSlices(), Nodes: client.Nodes(),
		Driver: driver, Log: log.WithField("part", "services"),
	}
	if o.kube.proxy == proxyFull {
		k.proxy = nodeproxy.New(nodeproxy.Config{Inside: ovsd.ContainerLinks(), Subnets: subnets, Log: to.Log})
		to.Node = k.proxy
	}
	k.services, err = services.New(to)
	return k, err
}

// serviceSubnets are where addresses of Services are that this node translates itself.
func (o *options) serviceSubnets() ([]netip.Prefix, error) {
	if o.kube.proxy != proxyFull {
		return nil, nil
	}
	return kubeapi.ServiceSubnets(o.kube.config)
}

// podNetworks finds the networks of pods; nil without an API server.
func (k *kubernetes) podNetworks() attachment.PodNetworks {
	if k == nil {
		return nil
	}
	return k.networks
}

// living lists the pods of this host; nil without an API server.
func (k *kubernetes) living() func(context.Context) (map[string]bool, error) {
	if k == nil {
		return nil
	}
	return k.pods
}

// endpointPolicies are those made of network policies; nil without an API server.
func (k *kubernetes) endpointPolicies() attachment.EndpointPolicies {
	if k == nil || k.policies == nil {
		return nil
	}
	return k.policies
}

// check adds what must hold for policies to be enforced.
func (k *kubernetes) check(checks map[string]func() error) {
	if k != nil && k.policies != nil {
		checks["networkpolicy"] = k.policies.Ready
	}
	if k != nil && k.proxy != nil {
		checks["services"] = k.proxy.Ready
	}
}

// Apply passes a batch of the state prefix on.
func (k *kubernetes) Apply(b objdb.Batch) {
	if k != nil && k.services != nil {
		k.services.Apply(b)
	}
}

// Run works until ctx ends.
func (k *kubernetes) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if k.proxy == nil {
		k.leaveNode(ctx)
	}
	g.Go(func() error { k.networks.Run(ctx); return nil })
	if k.policies != nil {
		g.Go(func() error { return k.policies.Run(ctx) })
	}
	if k.services != nil {
		g.Go(func() error { return k.services.Run(ctx) })
	}
	if k.proxy != nil {
		g.Go(func() error { return k.proxy.Run(ctx) })
	}
	return g.Wait()
}

// confirmNode tells the agent of this host's Node once the cluster has it: a name that is
// wrong must not make the host look like one whose Node is gone.
func (k *kubernetes) confirmNode(ctx context.Context, ag *agent.Agent) error {
	following, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { k.nodes.Run(following) })
	defer wg.Wait()
	defer stop()
	if err := k.nodes.Await(ctx, k.node); err != nil {
		return err
	}
	ag.SetNode(k.node)
	return nil
}

// leaveNode takes back what an agent has left that led this node to Services itself.
func (k *kubernetes) leaveNode(ctx context.Context) {
	switch found, err := nodeproxy.Remove(ctx, false); {
	case err != nil:
		k.log.WithError(err).Warn("two programs may load-balance Services on this node; remove the nftables table inet " + nodeproxy.Table)
	case found:
		k.log.Info("this node's own proxy load-balances Services from now on")
	}
}

// setUpNode writes what the container runtime needs, when everything that checks look at
// is well.
func (o *options) setUpNode(ctx context.Context, checks map[string]func() error, log *logrus.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the directory of netplugin: %w", err)
	}
	return nodesetup.Run(ctx, nodesetup.Config{
		ConfDir: o.kube.confDir, BinDir: o.kube.binDir, Source: filepath.Join(filepath.Dir(self), nodesetup.Plugin), Socket: o.cniSocket,
		PluginDir: cmp.Or(o.kube.binDir, "/opt/cni/bin"),
		Conf:      o.kube.conf,
		Ready: func() error {
			if why := complaints(checks); len(why) > 0 {
				return errs.New(errs.Unavailable, "%s", strings.Join(why, "; "))
			}
			_, err := os.Stat(o.cniSocket)
			return err
		},
		Log: log.WithField("part", "node"),
	})
}
