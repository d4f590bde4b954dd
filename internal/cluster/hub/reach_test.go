package hub

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestReach: every node that was tried is named once, with its own problem and without what is secret.
func TestReach(t *testing.T) {
	t.Parallel()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	closed, silent := listen(), listen()
	defer silent.Close()
	_ = closed.Close()
	plain := begin(t, Config{Listen: "127.0.0.1:0", Token: "hunter2"})
	own, pool := certificate(t)
	secured := begin(t, Config{Listen: "127.0.0.1:0", Token: "hunter2", TLS: own})
	addr := func(url string) string { return url[strings.Index(url, "//")+2:] }
	trusting := nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})
	for _, c := range []struct {
		node, want string
		options    []nats.Option
	}{
		{"nats://" + closed.Addr().String(), "connect: connection refused", nil},
		{"nats://me:secret@" + closed.Addr().String(), "connect: connection refused", nil},
		{"nats://" + addr(plain.URL()), "it refuses the token", []nats.Option{nats.Token("other")}},
		{"tls://" + addr(plain.URL()), "it has no TLS: write nats:// instead of tls://", []nats.Option{nats.Token("hunter2")}},
		{"tls://" + addr(secured.URL()), "tls error: tls: failed to verify certificate", []nats.Option{nats.Token("hunter2")}},
	} {
		err := Reach([]string{c.node, c.node}, time.Minute, c.options...)
		of, ok := errors.AsType[*UnreachableError](err)
		want := host(c.node) + ": " + c.want
		if !ok || len(of.Nodes) != 1 || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", c.node, err, want)
		}
	}
	if err := Reach([]string{silent.Addr().String()}, 50*time.Millisecond); err == nil || err.Error() != silent.Addr().String()+": it does not answer in time" {
		t.Error(err)
	}
	if err := Reach([]string{"nats://" + closed.Addr().String(), plain.URL()}, time.Minute, nats.Token("hunter2")); err != nil {
		t.Error(err)
	}
	if err := Reach([]string{"tls://" + addr(secured.URL())}, time.Minute, nats.Token("hunter2"), trusting); err != nil {
		t.Error(err)
	}
}
