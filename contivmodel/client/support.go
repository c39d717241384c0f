package client

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
)

// SupportBundle writes a bundle whose files have at most size bytes together.
func (c *Client) SupportBundle(ctx context.Context, w io.Writer, size int) error {
	resp, err := c.Do(ctx, http.MethodGet, doctorapi.PathSupport+"?"+doctorapi.QuerySize+"="+strconv.Itoa(size), nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return readAnswer(resp, nil)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(w, io.LimitReader(resp.Body, doctorapi.LargestSize)); err != nil {
		return errs.New(errs.Unavailable, "read the bundle: %w", err)
	}
	return nil
}
