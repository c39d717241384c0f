// Package openapi describes the object model as an OpenAPI 3.1 document. Shapes come
// from contivmodel's types; what types cannot say (which words a field may be, how
// long it may be) comes from one table, fields.go, whose every line is held to the
// validators by a test.
package openapi
