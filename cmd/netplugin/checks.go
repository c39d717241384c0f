package main

import (
	"sync"
	"time"
)

// complaints lists what does not hold.
func complaints(checks map[string]func() error) []string {
	var out []string
	for name, check := range checks {
		if err := check(); err != nil {
			out = append(out, name+": "+err.Error())
		}
	}
	return out
}

// remembered makes a check that is carried out once in a while only.
func remembered(check func() error, age time.Duration) func() error {
	var (
		mu   sync.Mutex
		at   time.Time
		last error
	)
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) >= age {
			last, at = check(), time.Now()
		}
		return last
	}
}
