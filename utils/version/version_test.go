package version_test

import (
	"encoding/json"
	"testing"

	"github.com/contiv/netplugin/utils/version"
)

func TestTexts(t *testing.T) {
	i := version.Info{GitCommit: "abc1234", Version: "1.2.3", BuildTime: "2024-05-06T07:08:09Z"}
	if got, want := i.Block(), "Version: 1.2.3\nGitCommit: abc1234\nBuildTime: 2024-05-06T07:08:09Z\n"; got != want {
		t.Errorf("Block = %q, want %q", got, want)
	}
	body, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(body), `{"GitCommit":"abc1234","Version":"1.2.3","BuildTime":"2024-05-06T07:08:09Z"}`; got != want {
		t.Errorf("JSON = %s, want %s", got, want)
	}
}

func TestUntoldBuild(t *testing.T) {
	if got, want := version.Block(), "Version: unknown\nGitCommit: unknown\nBuildTime: unknown\n"; got != want {
		t.Errorf("Block = %q, want %q", got, want)
	}
}
