// contivk8s is the CNI plugin of Contiv: it passes each call of a container runtime on
// to the agent of the host (CNI specification 0.1.0 to 1.1.0).
package main

import (
	"fmt"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniclient"
	"github.com/contiv/netplugin/utils/version"
)

func main() {
	if len(os.Args) == 2 && (os.Args[1] == "--version" || os.Args[1] == "-v") {
		fmt.Print(version.Block())
		return
	}
	p := &cniclient.Plugin{Stdout: os.Stdout}
	if err := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add: p.Add, Del: p.Del, Check: p.Check, GC: p.GC, Status: p.Status,
	}, cniversion.All, "Contiv CNI plugin "+version.Get().Version); err != nil {
		// The specification wants the error as JSON on standard output.
		if printErr := p.PrintError(err); printErr != nil {
			fmt.Fprintln(os.Stderr, printErr)
		}
		os.Exit(1)
	}
}
