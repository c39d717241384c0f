// Package systemtests tests the system as it is shipped: binaries, units, demo, and
// clusters of real daemons in labs.
package systemtests
