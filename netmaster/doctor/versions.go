package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/version"
)

// tested are the versions of Open vSwitch, major.minor, that the tests are run with
// (docs/operations.md), oldest the first that has everything that is used.
var (
	tested = []string{"3.1", "3.5", "4.0"}
	oldest = [2]int{2, 17}
)

// versions compares the versions of netplugin with this netmaster's, and looks for those of
// Open vSwitch that are not tested.
var versions = check{"versions", func(f *Facts) (out []doctorapi.Finding) {
	own := version.Get().Version
	bySwitch := map[string][]string{}
	for _, label := range f.labels() {
		h := f.Hosts[label]
		if h.Version != own {
			out = append(out, doctorapi.Finding{
				Code: "version-differs", Severity: doctorapi.Warning, Object: host(label),
				Text: fmt.Sprintf("its netplugin has version %s, this netmaster %s", h.Version, own), Do: "finish the upgrade: netmasters first, then netplugin on every host",
			})
		}
		bySwitch[h.Switch.Version] = append(bySwitch[h.Switch.Version], label)
	}
	for _, v := range slices.Sorted(maps.Keys(bySwitch)) {
		out = append(out, judgeSwitchVersion(v, bySwitch[v])...)
	}
	return out
}}

func judgeSwitchVersion(v string, labels []string) []doctorapi.Finding {
	find := doctorapi.Finding{
		Code: "ovs-untested", Severity: doctorapi.Note, Object: hostList(labels),
		Text: "Open vSwitch " + v + " is a version that the tests are not run with", Do: "nothing, or install one of " + strings.Join(tested, ", "),
	}
	minor, known := majorMinor(v)
	switch {
	case !known: // its start script has not recorded it
		return nil
	case slices.Contains(tested, fmt.Sprintf("%d.%d", minor[0], minor[1])):
		return nil
	case slices.Compare(minor[:], oldest[:]) < 0:
		find.Code, find.Severity = "ovs-old", doctorapi.Error
		find.Text, find.Do = "Open vSwitch "+v+" is too old", fmt.Sprintf("install version %d.%d or later", oldest[0], oldest[1])
	}
	return []doctorapi.Finding{find}
}

// majorMinor reads the first two numbers of a version.
func majorMinor(v string) (n [2]int, ok bool) {
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return n, false
	}
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(parts[i]); err != nil {
			return n, false
		}
	}
	return n, true
}

// mostNamed bounds how many hosts a finding names.
const mostNamed = 5

// hostList names hosts as the object of a finding.
func hostList(labels []string) string {
	if len(labels) == 1 {
		return host(labels[0])
	}
	if len(labels) > mostNamed {
		return fmt.Sprintf("%d hosts, among them %s", len(labels), strings.Join(labels[:mostNamed], ", "))
	}
	return "hosts " + strings.Join(labels, ", ")
}
