//go:build windows

package worker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"
)

// connect starts a worker that connects to a port of this machine and shows a token.
func connect(cmd *exec.Cmd) (_ Started, err error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return Started{}, fmt.Errorf("a port for a worker: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	token := rand.Text()
	cmd.Env = append(cmd.Env, fmt.Sprintf("PARLEY_WORKER=tcp:%s:%s", l.Addr(), token))
	if err := cmd.Start(); err != nil {
		return Started{}, err
	}
	if err := l.SetDeadline(time.Now().Add(stepLimit)); err != nil {
		return Started{}, err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return Started{}, errors.Join(fmt.Errorf("the worker did not connect: %w", err), cmd.Process.Kill(), cmd.Wait())
		}
		if shows(conn, token) {
			return Started{Conn: conn, Cmd: cmd}, nil
		}
		_ = conn.Close() // another program of this machine
	}
}

// shows reports whether a connection begins with the token.
func shows(conn net.Conn, token string) bool {
	got := make([]byte, len(token)+1)
	if conn.SetReadDeadline(time.Now().Add(5*time.Second)) != nil {
		return false
	}
	for n := 0; n < len(got); {
		m, err := conn.Read(got[n:])
		if err != nil {
			return false
		}
		n += m
	}
	return string(got) == token+"\n" && conn.SetReadDeadline(time.Time{}) == nil
}
