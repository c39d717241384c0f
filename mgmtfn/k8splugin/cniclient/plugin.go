package cniclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
)

// How long a call may take: to connect, and as a whole. A runtime itself waits two to
// four minutes.
const (
	connectTimeout = 5 * time.Second
	addTimeout     = 60 * time.Second
	otherTimeout   = 30 * time.Second
	maxReply       = 1 << 20
)

// Plugin implements the CNI verbs, for one call.
type Plugin struct {
	Stdout io.Writer // where results go

	version string // of the specification, as the configuration wants it
}

// PrintError prints an error in the form of the specification.
func (p *Plugin) PrintError(err *types.Error) error {
	return json.NewEncoder(p.Stdout).Encode(struct {
		CNIVersion string `json:"cniVersion"`
		*types.Error
	}{first(p.version, current.ImplementedSpecVersion), err})
}

// Add attaches a container and prints the result.
func (p *Plugin) Add(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	log := openLog(conf.LogFile, args.Netns)
	defer log.close()
	req := conf.request(args.ContainerID, args.Netns, args.IfName, args.Args)
	log.printf("ADD %s %s args %q", args.ContainerID, args.IfName, args.Args)
	reply, err := call(conf.Socket, cniapi.PathAddPod, addTimeout, req)
	if err != nil {
		log.printf("ADD %s failed: %v", args.ContainerID, err)
		return err
	}
	result, err := conf.result(reply, args)
	if err != nil {
		return types.NewError(types.ErrInternal, "Contiv:unusable answer of the agent", err.Error())
	}
	out, err := result.GetAsVersion(conf.CNIVersion)
	if err != nil {
		return types.NewError(types.ErrIncompatibleCNIVersion, "Contiv:cannot answer in version "+conf.CNIVersion, err.Error())
	}
	log.printf("ADD %s: %s %s on %s", args.ContainerID, reply.IPAddress, reply.IPv6Address, reply.HostIntf)
	return out.PrintTo(p.Stdout)
}

// Del detaches a container. It needs neither the namespace nor CNI_ARGS. An agent that
// cannot be asked is an error: the runtime repeats the call.
func (p *Plugin) Del(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	log := openLog(conf.LogFile, args.Netns)
	defer log.close()
	_, err = call(conf.Socket, cniapi.PathDelPod, otherTimeout, conf.request(args.ContainerID, args.Netns, args.IfName, args.Args))
	log.printf("DEL %s %s: %v", args.ContainerID, args.IfName, err)
	return err
}

// Check verifies an attachment.
func (p *Plugin) Check(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	if conf.PrevResult == nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "Contiv:CHECK without prevResult", "the runtime must pass the result of ADD")
	}
	_, err = call(conf.Socket, cniapi.PathCheckPod, otherTimeout, conf.request(args.ContainerID, args.Netns, args.IfName, args.Args))
	return err
}

// Status says whether ADD would work. Code 50 stands for an agent that cannot be
// reached as well as for one that is not ready.
func (p *Plugin) Status(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	_, err = call(conf.Socket, cniapi.PathStatus, otherTimeout, struct{}{})
	var ce *types.Error
	if errors.As(err, &ce) && ce.Code == cni.CodeTryLater {
		ce.Code = cni.CodeNotAvailable
	}
	return err
}

// GC removes the attachments of this host that the runtime does not list.
func (p *Plugin) GC(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	req := cniapi.GCRequest{ValidAttachments: []cniapi.Attachment{}}
	for _, v := range conf.ValidAttachments {
		req.ValidAttachments = append(req.ValidAttachments, cniapi.Attachment{ContainerID: v.ContainerID, IfName: v.IfName})
	}
	_, err = call(conf.Socket, cniapi.PathGC, otherTimeout, req)
	return err
}

// result builds the answer in the newest version. Behind another plugin it adds to
// that one's result.
func (c *netConf) result(reply cniapi.PodReply, args *skel.CmdArgs) (*current.Result, error) {
	res := &current.Result{CNIVersion: current.ImplementedSpecVersion}
	if c.PrevResult != nil {
		prev, err := current.NewResultFromResult(c.PrevResult)
		if err != nil {
			return nil, fmt.Errorf("prevResult: %w", err)
		}
		res = prev
	}
	if !c.DNS.IsEmpty() { // who runs the plugin says what resolver containers get
		res.DNS = c.DNS
	}
	if reply.HostIntf != "" {
		res.Interfaces = append(res.Interfaces, &current.Interface{Name: reply.HostIntf})
	}
	res.Interfaces = append(res.Interfaces, &current.Interface{Name: args.IfName, Mac: reply.MAC, Mtu: reply.MTU, Sandbox: args.Netns})
	index := len(res.Interfaces) - 1
	for _, ip := range []struct{ cidr, gateway string }{{reply.IPAddress, reply.Gateway}, {reply.IPv6Address, reply.IPv6Gateway}} {
		if ip.cidr == "" {
			continue
		}
		addr, ipNet, err := net.ParseCIDR(ip.cidr)
		if err != nil {
			return nil, fmt.Errorf("address: %w", err)
		}
		res.IPs = append(res.IPs, &current.IPConfig{
			Interface: current.Int(index), Gateway: net.ParseIP(ip.gateway),
			Address: net.IPNet{IP: addr, Mask: ipNet.Mask},
		})
	}
	for _, r := range reply.Routes {
		_, dst, err := net.ParseCIDR(r.Dst)
		if err != nil {
			return nil, fmt.Errorf("route: %w", err)
		}
		res.Routes = append(res.Routes, &types.Route{Dst: *dst, GW: net.ParseIP(r.Gateway)})
	}
	return res, nil
}

// call asks the agent. Every error is a *types.Error with a code of the specification
// or one of Contiv's.
func call(socket, path string, timeout time.Duration, req any) (cniapi.PodReply, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return cniapi.PodReply{}, types.NewError(types.ErrInternal, "Contiv:cannot encode the request", err.Error())
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	client := http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := client.Post("http://localhost"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return cniapi.PodReply{}, types.NewError(cni.CodeTryLater, "Contiv:the agent does not answer on "+socket+"; is netplugin running?", err.Error())
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return cniapi.PodReply{}, types.NewError(cni.CodeTryLater, "Contiv:the agent's answer broke off", err.Error())
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusInternalServerError:
	case http.StatusNotFound:
		return cniapi.PodReply{}, types.NewError(1, "Contiv:page not found", path)
	case http.StatusForbidden:
		return cniapi.PodReply{}, types.NewError(1, "Contiv:access denied", path)
	default:
		return cniapi.PodReply{}, types.NewError(1, "Contiv:"+resp.Status, path)
	}
	var reply cniapi.PodReply
	if err := json.Unmarshal(raw, &reply); err != nil {
		return reply, types.NewError(types.ErrDecodingFailure, "Contiv:unreadable answer of the agent", err.Error())
	}
	if resp.StatusCode == http.StatusOK && reply.Result == 0 {
		return reply, nil
	}
	code, msg := reply.ErrCode, reply.ErrMsg
	if code == 0 {
		code = max(reply.Result, 1)
	}
	if msg == "" {
		msg = "Contiv:internal server error"
	}
	return reply, types.NewError(code, msg, reply.ErrInfo)
}
