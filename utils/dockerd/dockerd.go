// Package dockerd is the little that Contiv asks of a Docker Engine through its API:
// which networks and containers there are, to make and to remove networks, and to be
// told when something changes. The version of the API is negotiated; Engines from 19.03
// on are understood.
package dockerd

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/contiv/netplugin/utils/errs"
)

// DefaultSocket is where an Engine serves its API.
const DefaultSocket = "/var/run/docker.sock"

// Network is a network as an Engine has it, or is to have it.
type Network struct {
	ID          string // chosen by the Engine
	Name        string
	Driver      string
	IPAMDriver  string
	Subnets     []Subnet
	Options     map[string]string // of the network driver
	IPAMOptions map[string]string
	Labels      map[string]string
	IPv6        bool
	Internal    bool
}

// Subnet is a subnet of a network; without a gateway, Gateway is the zero value.
type Subnet struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
}

// Container is a container that runs.
type Container struct {
	ID     string
	Name   string // without a slash
	Labels map[string]string
	// Attachments are its networks.
	Attachments []Attachment
}

// Attachment is a container's part in a network.
type Attachment struct {
	NetworkID, NetworkName string
	EndpointID             string
	IPv4                   netip.Addr
}

// Client talks to the Engine behind one socket. Create it with New.
type Client struct{ api *client.Client }

// New makes a client for the Engine behind a unix socket, which need not be there yet.
func New(socket string) (*Client, error) {
	api, err := client.New(client.WithHost("unix://"+socket), client.WithUserAgent("contiv"))
	if err != nil {
		return nil, errs.New(errs.Invalid, "Docker Engine at %s: %w", socket, err)
	}
	return &Client{api}, nil
}

// Close ends idle connections.
func (c *Client) Close() error { return c.api.Close() }

// within bounds one request to an Engine that may hang: reading for half a minute,
// changing, which has the Engine call its plugins, for a minute.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errs.New(errs.Timeout, "no answer after %s", limit))
}

const (
	toRead   = 30 * time.Second
	toChange = time.Minute
)

// Networks lists the networks, sorted by name and id.
func (c *Client) Networks(ctx context.Context) ([]Network, error) {
	ctx, cancel := within(ctx, toRead)
	defer cancel()
	res, err := c.api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, explain(ctx, "list networks", err)
	}
	out := make([]Network, 0, len(res.Items))
	for _, n := range res.Items {
		out = append(out, asNetwork(n.Network))
	}
	slices.SortFunc(out, func(a, b Network) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return out, nil
}

// Network returns the network of a name or an id; without one the error is NotFound.
func (c *Client) Network(ctx context.Context, name string) (Network, error) {
	ctx, cancel := within(ctx, toRead)
	defer cancel()
	res, err := c.api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if err != nil {
		return Network{}, explain(ctx, "network "+name, err)
	}
	return asNetwork(res.Network.Network), nil
}

// Endpoints lists the ids of the endpoints a network has, those of containers that are
// about to start included. A network that is gone has none.
func (c *Client) Endpoints(ctx context.Context, networkID string) ([]string, error) {
	ctx, cancel := within(ctx, toRead)
	defer cancel()
	res, err := c.api.NetworkInspect(ctx, networkID, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(ctx, "endpoints of network "+networkID, err)
	}
	var out []string
	for _, ep := range res.Network.Containers {
		out = append(out, ep.EndpointID)
	}
	return out, nil
}

func asNetwork(n network.Network) Network {
	out := Network{
		ID: n.ID, Name: n.Name, Driver: n.Driver, IPAMDriver: n.IPAM.Driver, Options: n.Options,
		IPAMOptions: n.IPAM.Options, Labels: n.Labels, IPv6: n.EnableIPv6, Internal: n.Internal,
	}
	for _, c := range n.IPAM.Config {
		out.Subnets = append(out.Subnets, Subnet{Prefix: c.Subnet, Gateway: c.Gateway})
	}
	return out
}

// CreateNetwork makes a network and returns its id.
func (c *Client) CreateNetwork(ctx context.Context, n Network) (string, error) {
	ctx, cancel := within(ctx, toChange)
	defer cancel()
	ipam := &network.IPAM{Driver: n.IPAMDriver, Options: n.IPAMOptions}
	for _, s := range n.Subnets {
		ipam.Config = append(ipam.Config, network.IPAMConfig{Subnet: s.Prefix.Masked(), Gateway: s.Gateway})
	}
	res, err := c.api.NetworkCreate(ctx, n.Name, client.NetworkCreateOptions{
		Driver: n.Driver, IPAM: ipam, EnableIPv6: &n.IPv6, Internal: n.Internal, Attachable: true,
		Options: n.Options, Labels: n.Labels,
	})
	if err != nil {
		return "", explain(ctx, "create network "+n.Name, err)
	}
	return res.ID, nil
}

// RemoveNetwork removes a network; one that is gone is no error.
func (c *Client) RemoveNetwork(ctx context.Context, id string) error {
	ctx, cancel := within(ctx, toChange)
	defer cancel()
	_, err := c.api.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return explain(ctx, "remove network "+id, err)
	}
	return nil
}

// PluginName returns the reference under which a managed plugin was installed, such as
// contiv/v2plugin:latest: networks have it as their driver.
func (c *Client) PluginName(ctx context.Context, id string) (string, error) {
	ctx, cancel := within(ctx, toRead)
	defer cancel()
	res, err := c.api.PluginInspect(ctx, id, client.PluginInspectOptions{})
	if err != nil {
		return "", explain(ctx, "plugin "+id, err)
	}
	return res.Plugin.Name, nil
}

// Containers lists the containers that run.
func (c *Client) Containers(ctx context.Context) ([]Container, error) {
	ctx, cancel := within(ctx, toRead)
	defer cancel()
	res, err := c.api.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return nil, explain(ctx, "list containers", err)
	}
	out := make([]Container, 0, len(res.Items))
	for _, item := range res.Items {
		ctr := Container{ID: item.ID, Labels: item.Labels}
		if len(item.Names) > 0 {
			// A link adds names of the form /other/alias.
			shortest := slices.MinFunc(item.Names, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
			ctr.Name = strings.TrimPrefix(shortest, "/")
		}
		if item.NetworkSettings != nil {
			for name, ep := range item.NetworkSettings.Networks {
				if ep != nil && ep.EndpointID != "" {
					ctr.Attachments = append(ctr.Attachments, Attachment{
						NetworkID: ep.NetworkID, NetworkName: name, EndpointID: ep.EndpointID, IPv4: ep.IPAddress,
					})
				}
			}
		}
		out = append(out, ctr)
	}
	return out, nil
}

// Watch calls changed whenever the networks, the containers that run or what they are
// attached to may have changed, first when it is connected. It returns when ctx ends,
// or with the error that broke the connection.
func (c *Client) Watch(ctx context.Context, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := c.api.Events(ctx, client.EventsListOptions{
		Filters: client.Filters{}.Add("type", string(events.ContainerEventType), string(events.NetworkEventType)),
	})
	if _, err := c.api.Ping(ctx, client.PingOptions{}); err != nil {
		return explain(ctx, "follow the events", err)
	}
	changed()
	for {
		select {
		case m := <-stream.Messages:
			if concerns(m) {
				changed()
			}
		case err := <-stream.Err:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return explain(ctx, "follow the events", err)
		}
	}
}

// concerns leaves out what containers do all the time.
func concerns(m events.Message) bool {
	switch m.Action {
	case events.ActionStart, events.ActionDie, events.ActionRename, events.ActionUpdate, events.ActionDestroy:
		return true
	}
	return m.Type == events.NetworkEventType
}

// explain gives an error of the Engine its kind.
func explain(ctx context.Context, what string, err error) error {
	kind := errs.Other
	switch {
	case errs.Is(context.Cause(ctx), errs.Timeout):
		return errs.New(errs.Timeout, "Docker Engine: %s: %w", what, context.Cause(ctx))
	case client.IsErrConnectionFailed(err):
		return errs.New(errs.Unavailable, "Docker Engine: %s: it does not answer; is dockerd running? %w", what, err)
	case errdefs.IsNotFound(err):
		kind = errs.NotFound
	case errdefs.IsConflict(err):
		kind = errs.Exists
	case errdefs.IsPermissionDenied(err): // how the Engine calls a network in use
		kind = errs.InUse
	case errdefs.IsInvalidArgument(err):
		kind = errs.Invalid
	case errdefs.IsUnavailable(err):
		kind = errs.Unavailable
	}
	return errs.New(kind, "Docker Engine: %s: %w", what, err)
}
