package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestReach: every node that was tried is named once, with its own problem.
func TestReach(t *testing.T) {
	t.Parallel()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	const closed = "127.0.0.1:1" // a port that systems give to nobody
	silent := listen()
	defer silent.Close()
	plain := begin(t, Config{Listen: "127.0.0.1:0", Token: "hunter2"})
	own, pool := certificate(t)
	secured := begin(t, Config{Listen: "127.0.0.1:0", Token: "hunter2", TLS: own})
	addr := func(url string) string { return url[strings.Index(url, "//")+2:] }
	trusting := nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})
	for _, c := range []struct {
		node, want string
		options    []nats.Option
	}{
		{"nats://" + closed, "connect: connection refused", nil},
		{"nats://" + addr(plain.URL()), "it refuses the token", []nats.Option{nats.Token("other")}},
		{"tls://" + addr(plain.URL()), "it has no TLS: give it a certificate, or write nats:// on the same machine", []nats.Option{nats.Token("hunter2")}},
		{"tls://" + addr(secured.URL()), "tls error: tls: failed to verify certificate", []nats.Option{nats.Token("hunter2")}},
	} {
		err := Reach(t.Context(), []string{c.node, c.node}, time.Minute, c.options...)
		of, ok := errors.AsType[*UnreachableError](err)
		want := host(c.node) + ": " + c.want
		if !ok || len(of.Nodes) != 1 || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", c.node, err, want)
		}
	}
	if err := Reach(t.Context(), []string{silent.Addr().String()}, 50*time.Millisecond); err == nil || err.Error() != silent.Addr().String()+": it does not answer in time" {
		t.Error(err)
	}
	if err := Reach(t.Context(), []string{"nats://" + closed, plain.URL()}, time.Minute, nats.Token("hunter2")); err != nil {
		t.Error(err)
	}
	if err := Reach(t.Context(), []string{"tls://" + addr(secured.URL())}, time.Minute, nats.Token("hunter2"), trusting); err != nil {
		t.Error(err)
	}
}

// TestNodes: an address with a user or a password is refused, and no error has a part of it.
func TestNodes(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"nats://me:hunter2@127.0.0.1:1", "nats://me:hunt%zzer2@127.0.0.1:1", "nats://me:hunter2@127.0.0.1:port", "nats://me:hunter2@127.0.0.1: 1",
		"nats://me:p@hunter2/x@127.0.0.1:1", "nats://hunter2@127.0.0.1:1", "nats://h:1,nats://me:hun,ter2@127.0.0.1:1", "me:hunter2@h",
		"nats://me:hunter2", "nats://h:1,nats://me:hunter2%40h", "nats://hun ter2:1", "nats://", "", "nats://h:1,,",
	} {
		nodes, err := Nodes(bad, false)
		if err == nil || strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %q, %v", bad, nodes, err)
		}
	}
	if nodes, err := Nodes("nats://localhost:4222, tls://10.0.0.1 ,[::1]:4222", false); err != nil || !slices.Equal(nodes, []string{"nats://localhost:4222", "tls://10.0.0.1", "[::1]:4222"}) {
		t.Errorf("%q, %v", nodes, err)
	}
	for _, clear := range []string{"nats://h:4222", "h:4222", "10.0.0.1", "tls://h:4222,nats://192.0.2.2:4222", "nats://0.0.0.0:4222"} {
		if nodes, err := Nodes(clear, false); err == nil || !strings.Contains(err.Error(), "without TLS others could read the token") {
			t.Errorf("%s: %q, %v", clear, nodes, err)
		}
		if _, err := Nodes(clear, true); err != nil {
			t.Errorf("%s with TLS: %v", clear, err)
		}
	}
	for _, scheme := range []string{"ws", "wss", "http", "NATS+tls"} {
		if nodes, err := Nodes(scheme+"://127.0.0.1:1", true); err == nil || !strings.Contains(err.Error(), "want nats://HOST:PORT or tls://HOST:PORT") {
			t.Errorf("%s: %q, %v", scheme, nodes, err)
		}
	}
}

// TestReachLimits: a hub cannot make the error long, nor hold up a process that stops.
func TestReachLimits(t *testing.T) {
	t.Parallel()
	rude, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer rude.Close()
	go func() { // it ends with its listener
		for {
			conn, err := rude.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("INFO {}\r\n-ERR '" + strings.Repeat("no ", 500) + "'\r\n"))
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	err = Reach(t.Context(), []string{rude.Addr().String()}, time.Minute)
	if err == nil || len(err.Error()) > 140 || !strings.Contains(err.Error(), "no no no") {
		t.Errorf("%v", err)
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("127.0.0.1:0%d", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	of, ok := errors.AsType[*UnreachableError](Reach(ctx, many, time.Hour))
	if !ok || len(of.Nodes) != maxNodes {
		t.Errorf("%v", of)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		conn, err := silent.Accept()
		cancel()
		if err == nil {
			defer conn.Close()
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	if err := Reach(ctx, []string{silent.Addr().String()}, time.Hour); err == nil {
		t.Error("it answered")
	}
}
