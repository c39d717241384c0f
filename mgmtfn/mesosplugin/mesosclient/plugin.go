package mesosclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/utils"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
)

// defaultLog is where the log goes to.
const defaultLog = "/var/log/netcontiv.log"

// Ends of a call, as the original has them.
const (
	ExitDone    = 0
	ExitInvalid = 1 // the call makes no sense; the agent was not asked
	ExitFailed  = 2
)

// Plugin is what one call works with.
type Plugin struct {
	Env            func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// verb is how a value of CNI_COMMAND is carried out.
type verb struct {
	path    string // of the agent
	timeout time.Duration
	since   string   // the specification's version that has it, if not all have
	needs   []string // variables of the environment that must not be empty
	carries func(*netConf, *mesosapi.Request)
}

const (
	envCommand   = "CNI_COMMAND"
	envContainer = "CNI_CONTAINERID"
	envInterface = "CNI_IFNAME"
	envNetns     = "CNI_NETNS"
	envArgs      = "CNI_ARGS"
)

var verbs = map[string]verb{
	"ADD":    {path: mesosapi.PathAdd, timeout: cni.AddTimeout, needs: []string{envContainer, envInterface, envNetns}},
	"DEL":    {path: mesosapi.PathDelete, timeout: cni.OtherTimeout, needs: []string{envContainer, envInterface}},
	"CHECK":  {path: mesosapi.PathCheck, timeout: cni.OtherTimeout, needs: []string{envContainer, envInterface, envNetns}},
	"STATUS": {path: mesosapi.PathStatus, timeout: cni.OtherTimeout, since: "1.1.0"},
	"GC":     {path: mesosapi.PathGC, timeout: cni.OtherTimeout, since: "1.1.0", carries: validAttachments},
}

func validAttachments(conf *netConf, req *mesosapi.Request) {
	for _, v := range conf.Valid {
		req.Valid = append(req.Valid, mesosapi.Attachment{ContainerID: v.ContainerID, IfName: v.IfName})
	}
}

// Run carries out the call and returns what the process is to end with. Standard output
// gets what the specification wants there: a result, nothing, or an error.
func (p *Plugin) Run() int {
	raw, readErr := readAll(p.Stdin)
	conf, invalid := parseConf(raw)
	if readErr != nil {
		invalid = types.NewError(cni.CodeIO, "contiv: cannot read the network configuration", readErr.Error())
	}
	command := strings.ToUpper(p.Env(envCommand))
	container := p.Env(envContainer)
	id, _, _ := strings.Cut(container, "-")
	log := cni.OpenLog(cmp.Or(conf.LogFile, defaultLog), p.Stderr, fmt.Sprintf("CMD=%s CID=%s", command, id))
	defer log.Close()

	if command == "VERSION" { // answered whatever else is wrong
		return p.print(log, cniversion.All)
	}
	v, known := verbs[command]
	if !known {
		return p.fail(log, ExitInvalid, conf, types.NewError(cni.CodeInvalidEnv, fmt.Sprintf("contiv: %s %q: expected ADD, DEL, CHECK, STATUS, GC or VERSION", envCommand, command), ""))
	}
	if invalid == nil {
		invalid = p.validate(v, conf)
	}
	if invalid != nil {
		return p.fail(log, ExitInvalid, conf, invalid)
	}
	netns := p.Env(envNetns)
	labels, err := conf.labels(netns)
	if err != nil {
		log.Printf("no labels, the defaults apply: %v", err)
	}
	req := mesosapi.Request{
		IfName: p.Env(envInterface), Netns: netns, ContainerID: container, Labels: labels,
		Version: conf.CNIVersion, Network: conf.Name, Args: p.Env(envArgs), DNS: conf.DNS,
	}
	if v.carries != nil {
		v.carries(conf, &req)
	}
	log.Printf("%s of %s in %s, labels %v", req.IfName, container, netns, labels)
	answer, failed := ask(conf.Socket, v, req)
	if failed != nil {
		if command == "STATUS" && failed.Code == cni.CodeTryLater {
			failed.Code = cni.CodeNotAvailable
		}
		return p.fail(log, ExitFailed, conf, failed)
	}
	log.Printf("done: %s", answer)
	if len(answer) == 0 {
		return ExitDone
	}
	return p.print(log, json.RawMessage(answer))
}

// validate refuses what no runtime should ask.
func (p *Plugin) validate(v verb, conf *netConf) *types.Error {
	for _, name := range v.needs {
		if p.Env(name) == "" {
			return types.NewError(cni.CodeInvalidEnv, "contiv: "+name+" is missing", "")
		}
	}
	if id := p.Env(envContainer); id != "" {
		if err := utils.ValidateContainerID(id); err != nil {
			return types.NewError(cni.CodeInvalidEnv, fmt.Sprintf("contiv: %s %q: %s", envContainer, id, err.Msg), err.Details)
		}
	}
	if name := p.Env(envInterface); name != "" {
		if err := utils.ValidateInterfaceName(name); err != nil {
			return types.NewError(cni.CodeInvalidEnv, fmt.Sprintf("contiv: %s %q: %s", envInterface, name, err.Msg), err.Details)
		}
	}
	if v.since == "" {
		return nil
	}
	if enough, err := cniversion.GreaterThanOrEqualTo(conf.CNIVersion, v.since); err != nil || !enough {
		return types.NewError(types.ErrIncompatibleCNIVersion, fmt.Sprintf("contiv: %s is of CNI %s, the configuration of %s", p.Env(envCommand), v.since, conf.CNIVersion), "")
	}
	return nil
}

// ask has the agent carry out a call. What it refuses it says itself.
func ask(socket string, v verb, req mesosapi.Request) ([]byte, *types.Error) {
	status, body, err := cni.Post(socket, v.path, v.timeout, req)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, types.NewError(cni.CodeTryLater, "contiv: netplugin is not serving Mesos", "is it running, with --mesos? "+err.Error())
	case os.IsTimeout(err):
		return nil, types.NewError(cni.CodeTryLater, "contiv: netplugin does not answer in time", err.Error())
	case err != nil:
		return nil, types.NewError(cni.CodeTryLater, "contiv: netplugin cannot be asked", err.Error())
	case status == http.StatusOK:
		if len(body) > 0 && !json.Valid(body) {
			return nil, types.NewError(cni.CodeDecode, "contiv: unreadable answer of netplugin", "")
		}
		return body, nil
	case status != http.StatusInternalServerError:
		return nil, types.NewError(types.ErrInternal, fmt.Sprintf("contiv: netplugin answers %d %s", status, http.StatusText(status)), v.path)
	}
	var refused types.Error
	if err := json.Unmarshal(body, &refused); err != nil || refused.Code == 0 {
		return nil, types.NewError(types.ErrInternal, "contiv: netplugin fails without saying why", "")
	}
	return nil, &refused
}

// print prints a line of JSON.
func (p *Plugin) print(log *cni.Log, what any) int {
	if err := json.NewEncoder(p.Stdout).Encode(what); err != nil {
		log.Printf("cannot print the answer: %v", err)
		return ExitFailed
	}
	return ExitDone
}

func (p *Plugin) fail(log *cni.Log, exit int, conf *netConf, err *types.Error) int {
	log.Printf("failed: %v", err)
	if printErr := cni.WriteError(p.Stdout, conf.CNIVersion, err); printErr != nil {
		log.Printf("cannot print the error: %v", printErr)
	}
	return exit
}
