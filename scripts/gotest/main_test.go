package main

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct{ args, flags, packages []string }{
		{[]string{"-race", "-p", "2", "-timeout", "25m", "./..."}, []string{"-race", "-p", "2", "-timeout", "25m"}, []string{"./..."}},
		{[]string{"-race", "./a", "./b/..."}, []string{"-race"}, []string{"./a", "./b/..."}},
		{[]string{"./a"}, nil, []string{"./a"}},
		{[]string{"-p", "2"}, []string{"-p", "2"}, nil},
	} {
		flags, packages := split(c.args)
		if !slices.Equal(flags, c.flags) || !slices.Equal(packages, c.packages) {
			t.Errorf("%q: flags %q, packages %q", c.args, flags, packages)
		}
	}
}

func TestPartition(t *testing.T) {
	shared, separate, err := partition([]string{"./...", "../housecheck"}, "housecheck")
	if err != nil || len(shared) != 1 || len(separate) != 1 {
		t.Errorf("%q, %q, %v", shared, separate, err)
	}
}
