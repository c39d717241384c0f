// Command contiv-prober is the Server of package prober that runs in pods.
//
//	contiv-prober NAME SOCKET PORTS [PROTOCOL ADDRESS]
package main

import (
	"fmt"
	"os"

	"github.com/contiv/netplugin/test/kubernetes/prober"
)

func main() {
	fmt.Fprintln(os.Stderr, "contiv-prober:", prober.Main(os.Args[1:]))
	os.Exit(1)
}
