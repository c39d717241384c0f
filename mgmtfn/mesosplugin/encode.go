package mesosplugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
)

// encode writes the attachment in the CNI version that the request names, or in the
// original's form.
func encode(req mesosapi.Request, a cni.Attached) ([]byte, error) {
	if req.Version == "" {
		return json.Marshal(mesosapi.OldResult{
			IP4: mesosapi.OldIP{IP: a.IPv4, Gateway: routed(a, a.Gateway4)},
			IP6: mesosapi.OldIP{IP: a.IPv6, Gateway: routed(a, a.Gateway6)},
		})
	}
	newest, err := a.Result(nil, req.IfName, req.Netns)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if req.DNS != nil {
		newest.DNS = *req.DNS
	}
	res, err := newest.GetAsVersion(req.Version)
	if err != nil {
		return nil, fmt.Errorf("result in version %s: %w", req.Version, err)
	}
	return json.Marshal(res)
}

// routed is the gateway if it is the network's. Containers of a network without gateway
// use a link-local router address of the switch, which the original does not know.
func routed(a cni.Attached, gateway string) string {
	addr, err := netip.ParseAddr(gateway)
	if err != nil {
		return ""
	}
	for _, r := range a.Routes {
		if r.Gateway == "" && r.Dst == netip.PrefixFrom(addr, addr.BitLen()).String() {
			return ""
		}
	}
	return gateway
}

// texts describe failed steps.
var texts = map[attachment.Step]string{
	attachment.StepRequest:   "invalid request",
	attachment.StepNetwork:   "failed to read labels",
	attachment.StepEndpoint:  "failed to create endpoint",
	attachment.StepNetns:     "failed to enter the network namespace",
	attachment.StepInterface: "failed to set up the interface",
	attachment.StepRoutes:    "failed to set up routes",
	attachment.StepDetach:    "failed to remove the port",
	attachment.StepSwitch:    "the switch is not ready",
	attachment.StepAgent:     "the agent is not ready",
}

// failure is the response body for err.
func failure(version string, err error) []byte {
	f := attachment.FailureOf(err)
	msg, why := "Contiv: "+texts[f.Step], strings.Join(strings.Fields(err.Error()), " ")
	if version == "" {
		// The original has no member for details. A struct of strings and numbers can be encoded.
		out, _ := json.Marshal(mesosapi.OldError{Version: mesosapi.OldErrorVersion, Code: mesosapi.OldErrorCode, Msg: msg + ": " + why})
		return out
	}
	var out bytes.Buffer
	_ = cni.WriteError(&out, version, types.NewError(f.Code, msg, why))
	return bytes.TrimSpace(out.Bytes())
}
