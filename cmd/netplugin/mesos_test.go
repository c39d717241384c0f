package main

import "testing"

func TestMesosIsOptIn(t *testing.T) {
	for _, c := range []struct {
		mode  string
		asked bool
		want  bool
	}{
		{"docker", false, false},
		{"swarm-mode", false, false},
		{"kubernetes", false, false},
		{"test", false, true},
		{"docker", true, true},
		{"kubernetes", true, true},
	} {
		o := &options{mesos: mesosOptions{serve: c.asked}}
		o.network.Mode = c.mode
		if got := o.runsMesos(); got != c.want {
			t.Errorf("mode %s, --mesos %t: serves Mesos: %t", c.mode, c.asked, got)
		}
	}
}
