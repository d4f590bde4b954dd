package worker_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"parley/internal/run/worker"
)

// loopbackMain is a worker that TestLoopback starts. PARLEY_TEST_WORKER says what it does.
func loopbackMain() int {
	address, ok := strings.CutPrefix(os.Getenv("PARLEY_WORKER"), "tcp:")
	cut := strings.LastIndexByte(address, ':')
	if !ok || cut < 0 {
		return 3
	}
	ctx := context.Background()
	switch os.Getenv("PARLEY_TEST_WORKER") {
	case "ends":
		return 7
	case "strangers": // before it connects, others try
		for _, token := range []string{"", strings.Repeat("A", len(address)-cut-1)} {
			conn, err := worker.Dial(ctx, address[:cut+1]+token)
			if err != nil {
				return 4
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				return 5 // a stranger was told something
			}
			_ = conn.Close()
		}
	}
	conn, err := worker.Dial(ctx, address)
	if err != nil {
		return 6
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return 8
	}
	if _, err := worker.Dial(ctx, address); err == nil {
		line = "a second connection was accepted\n"
	}
	_, _ = io.WriteString(conn, line)
	_, _ = io.Copy(io.Discard, in)
	return 0
}

// TestLoopback: a worker that shows the token gets the connection, and nobody else does.
func TestLoopback(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for what, fails := range map[string]string{"connects": "", "strangers": "", "ends": "the worker did not connect: exit status 7"} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("PARLEY_TEST_WORKER", what)
			s, err := worker.Python{Program: program, Output: io.Discard, Loopback: true}.Start()
			if fails != "" {
				if err == nil || err.Error() != fails {
					t.Errorf("error %v, want %q", err, fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(s.Conn, "hello\n")
			if line, err := bufio.NewReader(s.Conn).ReadString('\n'); line != "hello\n" {
				t.Errorf("read %q, %v", line, err)
			}
			if err := s.Conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDial: a wrong address is an error that does not show the token.
func TestDial(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "secret", "127.0.0.1:1:secret", "nonsense:secret", "127.0.0.1:99999:secret", "127.0.0.1:1:sec\nret"} {
		if conn, err := worker.Dial(t.Context(), address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", address, conn, err)
		}
	}
}
