package transport

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"parley/internal/provider"
)

// TestOneWrite checks that a small request is sent in one piece: its header and its body.
func TestOneWrite(t *testing.T) {
	t.Parallel()
	c := piped(t, provider.Provider{}, nil)
	c.pool.plain.DialContext = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			b := make([]byte, 64<<10)
			n, err := theirs.Read(b) // what one Write wrote
			if err != nil || !bytes.HasSuffix(b[:n], []byte(`{"model":"m"}`)) {
				t.Errorf("the first write is %q, %v", b[:n], err)
				return
			}
			io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		}()
		return ours, nil
	}
	a, err := c.Do(t.Context(), Request{Path: "/chat/completions", Body: []byte(`{"model":"m"}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if !a.sent.Load() {
		t.Error("the request is not recorded as sent")
	}
	if b, err := a.Bytes(t.Context()); err != nil || string(b) != "{}" {
		t.Errorf("Bytes = %q, %v", b, err)
	}
}
