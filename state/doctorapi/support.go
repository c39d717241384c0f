package doctorapi

import "time"

// Paths of support bundles.
const (
	PathSupport      = "/api/v1/support/" // GET a tar archive (gzip), from netmaster; QuerySize
	PathAgentSupport = "/support/"        // GET PathAgentSupport + a name of AgentFiles, from an agent: text
)

// QuerySize is how large the files of a bundle may be together, in bytes; default DefaultSize.
const QuerySize = "size"

// Bounds of a bundle in bytes, before compression, and of one file of an agent.
const (
	DefaultSize = 50 << 20
	LeastSize   = 64 << 10
	LargestSize = 500 << 20
	MaxFile     = 7 << 20
)

// Names of the files that agents make for bundles.
const (
	FileFlows = "flows" // the flows of the bridges, with counters
	FileOVSDB = "ovsdb" // what netplugin reads of the database of Open vSwitch
	FileFlags = "flags" // the command line, without secrets
	FileLog   = "log"   // the last lines of the agent's log, without secrets
)

// AgentFiles are all of them.
func AgentFiles() []string { return []string{FileFlags, FileLog, FileOVSDB, FileFlows} }

// Manifest is manifest.json, the last file of a bundle.
type Manifest struct {
	Made    time.Time `json:"made"`
	Version string    `json:"version"` // of netmaster
	Asked   []string  `json:"asked"`   // hosts whose agents answered
	Away    []Away    `json:"away"`    // hosts whose agents did not
	Files   []File    `json:"files"`
}

// File is a file of a bundle, or one that should be there.
type File struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	// Missing says why it is not there, or not whole.
	Missing string `json:"missing,omitempty"`
}
