// Package ui serves the page of netmaster: files, which the browser makes an application of.
//
// The page has no door of its own: all it shows and does goes through the REST API, with the
// rights of who has logged in (docs/page.md). What is in dist is made of src by make ui, and
// kept, so that building netmaster needs no Node.
package ui
