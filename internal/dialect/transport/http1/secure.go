package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// HandshakeTimeout bounds the time of a TLS handshake.
const HandshakeTimeout = 20 * time.Second

var errHandshake = errors.New("the TLS handshake took too long")

// Secure returns a connection with TLS, for Dial. If there is none, it closes raw.
func Secure(ctx context.Context, raw net.Conn, config *tls.Config) (net.Conn, error) {
	c := tls.Client(raw, config)
	ctx, cancel := context.WithTimeoutCause(ctx, HandshakeTimeout, errHandshake)
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
