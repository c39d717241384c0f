// Package version says which build this is. The build sets its variables:
//
//	go build -ldflags "-X github.com/contiv/netplugin/utils/version.version=1.2.3 …"
package version

import (
	"cmp"
	"fmt"
)

// Set by the linker, never by the program.
var (
	version   string
	gitCommit string
	buildTime string
)

// Info describes a build, as GET /version answers it.
type Info struct {
	GitCommit string `json:"GitCommit"`
	Version   string `json:"Version"`
	BuildTime string `json:"BuildTime"`
}

// Get returns what the build was told of itself, "unknown" for what it was not told.
func Get() Info {
	return Info{
		GitCommit: cmp.Or(gitCommit, "unknown"),
		Version:   cmp.Or(version, "unknown"),
		BuildTime: cmp.Or(buildTime, "unknown"),
	}
}

// Block returns the three lines that --version prints, each ended by a newline.
func (i Info) Block() string {
	return fmt.Sprintf("Version: %s\nGitCommit: %s\nBuildTime: %s\n", i.Version, i.GitCommit, i.BuildTime)
}

// Block returns the three lines of this build.
func Block() string { return Get().Block() }
