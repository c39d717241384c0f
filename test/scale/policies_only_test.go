package main

import (
	"testing"
)

func TestPoliciesOnly(t *testing.T) {
	f, err := measurePolicies(t.Context(), 30000, 100, 20)
	t.Log(f, err)
}
