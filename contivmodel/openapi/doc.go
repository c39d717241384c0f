// Package openapi describes the object model as an OpenAPI 3.1 document. Shapes come
// from the types of contivmodel; what types cannot say (allowed values, limits, formats)
// comes from the descriptions of fields by which objects are validated.
package openapi
