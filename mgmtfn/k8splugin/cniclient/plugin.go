package cniclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
)

// Plugin implements the CNI verbs, for one call.
type Plugin struct {
	Stdout io.Writer // where results go

	version string // of the specification, as the configuration wants it
}

// PrintError prints an error in the form of the specification.
func (p *Plugin) PrintError(err *types.Error) error {
	return cni.WriteError(p.Stdout, p.version, err)
}

// Add attaches a container and prints the result.
func (p *Plugin) Add(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	log := conf.log(args)
	defer log.Close()
	req := conf.request(args.ContainerID, args.Netns, args.IfName, args.Args)
	log.Printf("ADD %s %s args %q", args.ContainerID, args.IfName, args.Args)
	reply, err := call(conf.Socket, cniapi.PathAddPod, cni.AddTimeout, req)
	if err != nil {
		log.Printf("ADD %s failed: %v", args.ContainerID, err)
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
	log.Printf("ADD %s: %s %s on %s", args.ContainerID, reply.IPAddress, reply.IPv6Address, reply.HostIntf)
	return out.PrintTo(p.Stdout)
}

// Del detaches a container. It needs neither the namespace nor CNI_ARGS. When the agent
// is not there, or cannot do it now, a note is left for it: pods must not be kept from
// ending.
func (p *Plugin) Del(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	log := conf.log(args)
	defer log.Close()
	_, err = call(conf.Socket, cniapi.PathDelPod, cni.OtherTimeout, conf.request(args.ContainerID, args.Netns, args.IfName, args.Args))
	log.Printf("DEL %s %s: %v", args.ContainerID, args.IfName, err)
	var refused *types.Error
	if !errors.As(err, &refused) || refused.Code != cni.CodeTryLater {
		return err
	}
	note := cni.Note{ContainerID: args.ContainerID, IfName: args.IfName}
	if why := note.Leave(cni.NotesDir(conf.Socket)); why != nil {
		log.Printf("DEL %s %s: no note for the agent: %v", args.ContainerID, args.IfName, why)
		return err // the runtime repeats the call
	}
	log.Printf("DEL %s %s: noted for the agent", args.ContainerID, args.IfName)
	return nil
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
	_, err = call(conf.Socket, cniapi.PathCheckPod, cni.OtherTimeout, conf.request(args.ContainerID, args.Netns, args.IfName, args.Args))
	return err
}

// Status says whether ADD would work. Code 50 stands for an agent that cannot be
// reached as well as for one that is not ready.
func (p *Plugin) Status(args *skel.CmdArgs) error {
	conf, err := p.parseConf(args.StdinData)
	if err != nil {
		return err
	}
	_, err = call(conf.Socket, cniapi.PathStatus, cni.OtherTimeout, struct{}{})
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
	req := cniapi.GCRequest{Config: conf.PluginConf.Name, ValidAttachments: []cniapi.Attachment{}}
	for _, v := range conf.ValidAttachments {
		req.ValidAttachments = append(req.ValidAttachments, cniapi.Attachment{ContainerID: v.ContainerID, IfName: v.IfName})
	}
	_, err = call(conf.Socket, cniapi.PathGC, cni.OtherTimeout, req)
	return err
}

// result builds the answer in the newest version. Behind another plugin it adds to
// that one's result.
func (c *netConf) result(reply cniapi.PodReply, args *skel.CmdArgs) (*current.Result, error) {
	attached := cni.Attached{
		MAC: reply.MAC, MTU: reply.MTU, HostPort: reply.HostIntf,
		IPv4: reply.IPAddress, IPv6: reply.IPv6Address, Gateway4: reply.Gateway, Gateway6: reply.IPv6Gateway,
	}
	for _, r := range reply.Routes {
		attached.Routes = append(attached.Routes, cni.Route(r))
	}
	res, err := attached.Result(c.PrevResult, args.IfName, args.Netns)
	if err != nil {
		return nil, err
	}
	if !c.DNS.IsEmpty() { // who runs the plugin says what resolver containers get
		res.DNS = c.DNS
	}
	return res, nil
}

// call asks the agent. Every error is a *types.Error with a code of the specification
// or one of Contiv's.
func call(socket, path string, timeout time.Duration, req any) (cniapi.PodReply, error) {
	status, raw, err := cni.Post(socket, path, timeout, req)
	if err != nil {
		return cniapi.PodReply{}, types.NewError(cni.CodeTryLater, "Contiv:the agent does not answer on "+socket+"; is netplugin running?", err.Error())
	}
	switch status {
	case http.StatusOK, http.StatusInternalServerError:
	case http.StatusNotFound:
		return cniapi.PodReply{}, types.NewError(1, "Contiv:page not found", path)
	case http.StatusForbidden:
		return cniapi.PodReply{}, types.NewError(1, "Contiv:access denied", path)
	default:
		return cniapi.PodReply{}, types.NewError(1, fmt.Sprintf("Contiv:%d %s", status, http.StatusText(status)), path)
	}
	var reply cniapi.PodReply
	if err := json.Unmarshal(raw, &reply); err != nil {
		return reply, types.NewError(types.ErrDecodingFailure, "Contiv:unreadable answer of the agent", err.Error())
	}
	if status == http.StatusOK && reply.Result == 0 {
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
