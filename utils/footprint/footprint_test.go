package footprint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMappings(t *testing.T) {
	const smaps = `00400000-016c9000 r-xp 00000000 fe:00 131 /usr/bin/net plugin
Size:              19236 kB
Rss:               11000 kB
Anonymous:             0 kB
02dd0000-02dd1000 r--p 029cf000 fe:00 131 /usr/bin/net plugin
Anonymous:             4 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:          4096 kB
`
	want := []mapping{
		{0x400000, 0x16c9000, "r-xp", "/usr/bin/net plugin", 0},
		{0x2dd0000, 0x2dd1000, "r--p", "/usr/bin/net plugin", 4},
		{0xc000000000, 0xc000400000, "rw-p", "", 4096},
	}
	if diff := cmp.Diff(want, mappings([]byte(smaps)), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
	if got := mappings([]byte("nonsense\nAnonymous: 4 kB\n")); len(got) != 0 {
		t.Errorf("of nonsense: %v", got)
	}
}

// TestShrink: the program goes on as before, its constants included.
func TestShrink(t *testing.T) {
	n, err := Shrink()
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("nothing of the program's file was released")
	}
	if text := strings.ToUpper("constants are read again"); text != "CONSTANTS ARE READ AGAIN" {
		t.Error(text)
	}
	if _, err := Shrink(); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
