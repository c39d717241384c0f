// Package bench measures the whole system on labs. Each benchmark runs Contiv and a
// floor, what the same machine does without it, in turns in one run, and reports the
// ratio: that is comparable between machines, the milliseconds are not.
//
//	go test -bench . ./test/bench
package bench
