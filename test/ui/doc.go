// Package ui tests the page of netmaster as people use it: in a headless Chromium, against the
// real daemons of a lab.
package ui
