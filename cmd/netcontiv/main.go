// netcontiv is the CNI plugin of Contiv for Apache Mesos: it passes each call of its
// isolator on to the agent of the host (CNI specification 0.1.0 to 1.1.0).
package main

import (
	"fmt"
	"os"

	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosclient"
	"github.com/contiv/netplugin/utils/version"
)

func main() {
	if len(os.Args) == 2 && (os.Args[1] == "--version" || os.Args[1] == "-version") {
		fmt.Printf("Contiv netplugin version : %s\n%s", version.Get().Version, version.Block())
		return
	}
	p := &mesosclient.Plugin{Env: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(p.Run())
}
