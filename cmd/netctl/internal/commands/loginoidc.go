package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/utils/retry"
)

// device is what the server says of a login on another device (RFC 8628 §3.2).
type device struct {
	DeviceCode      string    `json:"device_code"`
	UserCode        string    `json:"user_code"`
	VerificationURI string    `json:"verification_uri"`
	Complete        string    `json:"verification_uri_complete"`
	Interval        int       `json:"interval"` // seconds; 0 means 5
	Expires         time.Time `json:"expiry"`
}

// logInByDevice shows where to log in by a browser, and waits until the user has.
func logInByDevice(ctx context.Context, cmd *cli.Command, c *client.Client, t target) error {
	var d device
	if err := c.Auth(ctx, http.MethodPost, "oidc/device/", nil, &d); err != nil {
		return refused(err)
	}
	text := fmt.Sprintf("Open %s and enter the code %s\n", d.VerificationURI, d.UserCode)
	if d.Complete != "" {
		text += fmt.Sprintf("or open %s\n", d.Complete)
	}
	if err := print(cmd, text); err != nil {
		return err
	}
	wait := 5 * time.Second // RFC 8628 §3.2
	if d.Interval > 0 {
		wait = time.Duration(d.Interval) * time.Second
	}
	for retry.Pause(ctx, wait) {
		var got struct {
			Token string `json:"token"`
		}
		err := c.Auth(ctx, http.MethodPost, "oidc/token/", map[string]string{"device_code": d.DeviceCode}, &got)
		var answer *client.Error
		switch {
		case err == nil && got.Token != "":
			return loggedIn(cmd, t, got.Token)
		case err == nil:
			return refused(errors.New("the answer to the login holds no token"))
		case errors.As(err, &answer) && answer.Text == "authorization_pending":
		case errors.As(err, &answer) && answer.Text == "slow_down":
			wait += 5 * time.Second // RFC 8628 §3.5
		default:
			return refused(err)
		}
		if !d.Expires.IsZero() && time.Now().After(d.Expires) {
			return refused(errors.New("nobody has logged in within the time that the code is good for"))
		}
	}
	return refused(ctx.Err())
}
