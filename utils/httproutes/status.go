package httproutes

import (
	"net/http"

	"github.com/contiv/netplugin/utils/errs"
)

// StatusOf returns the HTTP status for an error by its kind.
func StatusOf(err error) int {
	switch errs.KindOf(err) {
	case errs.Invalid:
		return http.StatusBadRequest
	case errs.NotFound:
		return http.StatusNotFound
	case errs.Conflict, errs.Exists, errs.InUse, errs.Exhausted:
		return http.StatusConflict
	case errs.Unavailable, errs.Timeout:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
