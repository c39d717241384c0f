// Package doctor says what is wrong with a cluster, and what to do about it.
//
// Facts are gathered first: from the agent of every host, the store, the netmasters and the
// intent (gather.go). Then checks judge them, each by itself; a check is a function without
// side effects from Facts to findings:
//
//	var switches = check{"switches", func(f *Facts) []doctorapi.Finding { … }}
//
// To add one, write it in a file of its own and put it into the list in checks.go. If it needs to know something
// new of hosts, add a field to doctorapi.Host and fill it in drivers/ovsd/examine.go. Every code of a
// finding is explained in docs/operations.md, which a test checks.
package doctor
