package main

const module = "github.com/contiv/netplugin"

// mayImport says which top folders a top folder's own code may import, besides itself.
// Tests may import what they like.
var mayImport = map[string][]string{
	"cmd": {
		"netmaster", "netplugin", "mgmtfn", "contivmodel", "state", "drivers",
		"ofnet", "ovsdb", "objdb", "libopenflow", "utils",
	},
	"netmaster":   {"contivmodel", "state", "drivers", "ofnet", "objdb", "utils"}, // of the data plane, the types that rules are evaluated from
	"netplugin":   {"contivmodel", "state", "drivers", "ofnet", "ovsdb", "objdb", "libopenflow", "utils"},
	"mgmtfn":      {"contivmodel", "state", "drivers", "ofnet", "objdb", "utils"},
	"contivmodel": {"state", "objdb", "utils"},
	"state":       {"objdb", "utils"},
	"drivers":     {"state", "ofnet", "ovsdb", "libopenflow", "utils"},
	"ofnet":       {"libopenflow", "utils"},
	"ovsdb":       {"utils"},
	"objdb":       {"utils"},
	"libopenflow": {},
	"utils":       {},
	"install":     {"netmaster", "utils"}, // of netmaster, what its page contains
}

// everywhere are the folders that may import anything, and end and sleep as they
// like: what tests and builds is no part of what is built.
var everywhere = []string{"test", "scripts"}

// onlyIn says where packages from outside may be imported. The longest prefix of an
// import path counts.
var onlyIn = map[string][]string{
	"go.etcd.io/":                     {"objdb"},
	"github.com/hashicorp/":           {"objdb"},
	"k8s.io/":                         {"mgmtfn/k8splugin", "mgmtfn/k8spolicy", "netmaster/tokenreview", "netmaster/kubeca", "cmd"},
	"github.com/moby/":                {"utils/dockerd"},
	"github.com/docker/":              {"utils/dockerd"},
	"github.com/containernetworking/": {"mgmtfn", "netplugin", "drivers", "utils", "cmd"},
	"github.com/osrg/gobgp/":          {"ofnet", "netplugin"},
}

// standardOnly are folders that use nothing but the standard library.
var standardOnly = []string{"libopenflow"}

// forbiddenCalls are functions nothing but a command may call, by import path and
// name.
var forbiddenCalls = map[string][]string{
	"os":                         {"Exit"},
	"log":                        {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
	"github.com/sirupsen/logrus": {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln", "Exit"},
}

// forbiddenMethods are the same for methods of loggers, in files without tests.
var forbiddenMethods = []string{"Fatal", "Fatalf", "Fatalln"}
