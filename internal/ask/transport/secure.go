package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// handshakeTimeout bounds the time of a TLS handshake.
const handshakeTimeout = 20 * time.Second

var errHandshake = errors.New("the TLS handshake took too long")

// http1Secure returns a connection with TLS, for Dial. If there is none, it closes raw.
func http1Secure(ctx context.Context, raw net.Conn, config *tls.Config) (net.Conn, error) {
	c := tls.Client(raw, config)
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTimeout, errHandshake)
	defer cancel()
	err := c.HandshakeContext(ctx)
	if err == nil {
		return c, nil
	}
	_ = raw.Close() // it was not used
	if context.Cause(ctx) == errHandshake {
		err = errHandshake
	}
	return nil, err
}
