package main

import (
	"testing"

	"github.com/sirupsen/logrus"
)

// Kubernetes has a DNS of its own; elsewhere there is none but ours.
func TestNamesAreForThoseWithoutADNS(t *testing.T) {
	for _, c := range []struct {
		dns, mode string
		want      bool
	}{
		{"auto", "kubernetes", false},
		{"auto", "docker", true},
		{"auto", "swarm-mode", true},
		{"auto", "test", true},
		{"on", "kubernetes", true},
		{"off", "docker", false},
	} {
		o := nameOptions{dns: c.dns, domain: "contiv.local"}
		s, err := o.server(c.mode, logrus.New())
		if err != nil || (s != nil) != c.want {
			t.Errorf("--dns %s in mode %s: a server %t, want %t (%v)", c.dns, c.mode, s != nil, c.want, err)
		}
	}
}

func TestNameOptions(t *testing.T) {
	good := nameOptions{dns: "AUTO", domain: "contiv.local", ttl: 5, rate: 1000}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*nameOptions){
		"dns":    func(o *nameOptions) { o.dns = "maybe" },
		"ttl":    func(o *nameOptions) { o.ttl = -1 },
		"rate":   func(o *nameOptions) { o.rate = 0 },
		"domain": func(o *nameOptions) { o.domain = "." },
	} {
		bad := good
		change(&bad)
		if err := bad.validate(); err == nil {
			t.Errorf("a bad %s is accepted: %+v", name, bad)
		}
	}
}
