package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/contiv/netplugin/utils/errs"
)

// Attachment describes a container.
type Attachment struct {
	Host    string
	Name    string // unique in the lab
	Tenant  string // "" for the default one
	Network string
	Group   string // "" for none
	Plugin  string // that attaches it: "" for contivk8s, or Netcontiv
}

// Container is a network namespace on a host, attached as a runtime attaches a pod.
type Container struct {
	Name        string         `json:"name"`
	Host        string         `json:"host"`
	Tenant      string         `json:"tenant,omitempty"`
	Network     string         `json:"network"`
	Group       string         `json:"group,omitempty"`
	Plugin      string         `json:"plugin,omitempty"`
	ContainerID string         `json:"containerId"`
	Netns       string         `json:"netns"` // path in the host
	Interface   string         `json:"interface"`
	MAC         string         `json:"mac,omitempty"`
	MTU         int            `json:"mtu,omitempty"`
	IPv4        string         `json:"ipv4,omitempty"` // without prefix length
	IPv6        string         `json:"ipv6,omitempty"`
	IPs         []string       `json:"ips"` // with prefix length
	Routes      []string       `json:"routes,omitempty"`
	Result      map[string]any `json:"result,omitempty"` // what the plugin answered
}

// CNI plugins of ours: of any runtime, and of Mesos.
const (
	contivk8s = "contivk8s"
	Netcontiv = "netcontiv"
)

const (
	cniVersion   = "1.0.0"
	cniInterface = "eth0"
	maxName      = 63
)

// CNI limits container ids to these characters; namespaces are files of that name.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Attach makes a network namespace on a host and attaches it by running the CNI plugin
// as a container runtime does. When that fails nothing is left of it.
func (l *Lab) Attach(ctx context.Context, a Attachment) (Container, error) {
	h, err := l.Host(a.Host)
	if err != nil {
		return Container{}, err
	}
	if !validName.MatchString(a.Name) || len(a.Name) > maxName {
		return Container{}, errs.New(errs.Invalid, "container name %q: expected at most %d of A-Z a-z 0-9 _ . - and a letter or digit first", a.Name, maxName)
	}
	if _, err := l.Host(a.Name); err == nil {
		return Container{}, errs.New(errs.Invalid, "container name %q is the name of a host", a.Name)
	}
	if a.Network == "" {
		return Container{}, errs.New(errs.Invalid, "container %s: a network is needed", a.Name)
	}
	id := make([]byte, 6)
	if _, err := rand.Read(id); err != nil {
		return Container{}, err
	}
	c := Container{
		Name: a.Name, Host: a.Host, Tenant: a.Tenant, Network: a.Network, Group: a.Group, Plugin: a.Plugin,
		// Another container has the same name.
		ContainerID: a.Name + "-" + hex.EncodeToString(id),
		Netns:       "/run/netns/" + a.Name, Interface: cniInterface, IPs: []string{},
	}
	// From here on the container is recorded, and Detach removes whatever exists.
	if err := writeNew(l.containerFile(c.Name), c); err != nil {
		if errs.Is(err, errs.Exists) {
			return Container{}, errs.New(errs.Exists, "container %s is attached already", c.Name)
		}
		return Container{}, err
	}
	if err := h.attach(ctx, &c); err != nil {
		// Clean up even if the caller has given up.
		return Container{}, errors.Join(err, l.Detach(context.WithoutCancel(ctx), c.Name))
	}
	return c, nil
}

func (h *Host) attach(ctx context.Context, c *Container) error {
	client, err := h.client()
	if err != nil {
		return err
	}
	if _, err := client.AddNetns(ctx, c.Name); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	out, err := h.cni(ctx, "ADD", *c)
	if err != nil {
		return err
	}
	if err := c.read(out); err != nil {
		return err
	}
	return replace(h.lab.containerFile(c.Name), c)
}

// Detach detaches a container and removes its namespace and its record.
func (l *Lab) Detach(ctx context.Context, name string) error {
	c, err := l.Container(name)
	if err != nil {
		return err
	}
	h, err := l.Host(c.Host)
	if err != nil {
		return err
	}
	client, err := h.client()
	if err != nil {
		return err
	}
	if _, err := h.cni(ctx, "DEL", c); err != nil {
		return err
	}
	if err := client.RemoveNetns(ctx, c.Name); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return os.Remove(l.containerFile(name))
}

// Check runs the plugin's CHECK on a container.
func (l *Lab) Check(ctx context.Context, name string) error {
	c, err := l.Container(name)
	if err != nil {
		return err
	}
	h, err := l.Host(c.Host)
	if err != nil {
		return err
	}
	_, err = h.cni(ctx, "CHECK", c)
	return err
}

// netconf is the network configuration a runtime would read from /etc/cni/net.d.
func (c Container) netconf() ([]byte, error) {
	if c.Plugin == Netcontiv {
		return c.mesosConf()
	}
	contiv := map[string]string{"network": c.Network}
	if c.Tenant != "" {
		contiv["tenant"] = c.Tenant
	}
	if c.Group != "" {
		contiv["group"] = c.Group
	}
	conf := map[string]any{"cniVersion": cniVersion, "name": "contiv-net", "type": contivk8s, "contiv": contiv}
	if c.Result != nil {
		conf["prevResult"] = c.Result
	}
	return json.Marshal(conf)
}

// mesosConf is the network configuration as the isolator of Mesos passes it on.
func (c Container) mesosConf() ([]byte, error) {
	type label struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	labels := []label{{"io.contiv.network", c.Network}}
	if c.Tenant != "" {
		labels = append(labels, label{"io.contiv.tenant", c.Tenant})
	}
	if c.Group != "" {
		labels = append(labels, label{"io.contiv.net-group", c.Group})
	}
	info := map[string]any{"name": "contiv-net", "labels": map[string]any{"labels": labels}}
	return json.Marshal(map[string]any{
		"cniVersion": cniVersion, "name": "contiv-net", "type": Netcontiv,
		"args": map[string]any{"org.apache.mesos": map[string]any{"network_info": info}},
	})
}

// cni runs the plugin in the host, as the host's runtime would.
func (h *Host) cni(ctx context.Context, command string, c Container) ([]byte, error) {
	conf, err := c.netconf()
	if err != nil {
		return nil, err
	}
	plugin, args := contivk8s, "K8S_POD_NAMESPACE=default;K8S_POD_NAME="+c.Name
	if c.Plugin == Netcontiv {
		plugin, args = Netcontiv, "MESOS_TASK_NAME="+c.Name
	}
	var out, stderr bytes.Buffer
	err = h.Run(ctx, Stdio{In: bytes.NewReader(conf), Out: &out, Err: &stderr, Env: []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + c.ContainerID, "CNI_NETNS=" + c.Netns,
		"CNI_IFNAME=" + c.Interface, "CNI_PATH=/opt/cni/bin",
		"CNI_ARGS=IgnoreUnknown=1;" + args,
	}}, "/opt/cni/bin/"+plugin)
	if err == nil {
		return out.Bytes(), nil
	}
	said := strings.TrimSpace(out.String() + stderr.String())
	var refused struct{ Msg, Details string }
	if json.Unmarshal(out.Bytes(), &refused) == nil && refused.Msg != "" {
		said = strings.TrimSuffix(refused.Msg+": "+refused.Details, ": ")
	}
	return nil, fmt.Errorf("%s: %s %s of container %s: %w: %s", h.Name, plugin, command, c.Name, err, said)
}

// read takes addresses and link from the plugin's answer.
func (c *Container) read(answer []byte) error {
	parsed, err := types100.NewResult(answer)
	if err != nil {
		return fmt.Errorf("read the answer of the plugin for container %s: %w", c.Name, err)
	}
	result, err := types100.GetResult(parsed)
	if err != nil {
		return fmt.Errorf("read the answer of the plugin for container %s: %w", c.Name, err)
	}
	if err := json.Unmarshal(answer, &c.Result); err != nil {
		return fmt.Errorf("read the answer of the plugin for container %s: %w", c.Name, err)
	}
	for _, i := range result.Interfaces {
		if i.Sandbox != "" && i.Name == c.Interface {
			c.MAC, c.MTU = i.Mac, i.Mtu
		}
	}
	for _, ip := range result.IPs {
		c.IPs = append(c.IPs, ip.Address.String())
		switch {
		case ip.Address.IP.To4() == nil:
			c.IPv6 = ip.Address.IP.String()
		default:
			c.IPv4 = ip.Address.IP.String()
		}
	}
	for _, r := range result.Routes {
		route := r.Dst.String()
		if r.GW != nil {
			route += " via " + r.GW.String()
		}
		c.Routes = append(c.Routes, route)
	}
	return nil
}
