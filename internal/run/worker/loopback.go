package worker

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// tokenWait is how long a connection may take to show its token.
const tokenWait = 5 * time.Second

// connectLoopback starts a worker that connects to a port of this machine and shows a token, as workers do on Windows. One
// connection is accepted; all others are closed.
func connectLoopback(cmd *exec.Cmd) (_ Started, err error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return Started{}, fmt.Errorf("a port for a worker: %w", err)
	}
	token := rand.Text()
	cmd.Env = append(cmd.Env, fmt.Sprintf("PARLEY_WORKER=tcp:%s:%s", l.Addr(), token))
	if err := cmd.Start(); err != nil {
		return Started{}, errors.Join(err, l.Close())
	}
	s := Started{Cmd: cmd, wait: sync.OnceValue(cmd.Wait)}
	over := time.AfterFunc(stepLimit, func() { _ = l.Close() }) // Accept reports it
	go func() {
		_ = s.wait() // the reader of the worker reports how it ended
		_ = l.Close()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			_ = cmd.Process.Kill() // it may have ended
			if s.wait() != nil && cmd.ProcessState != nil {
				err = fmt.Errorf("%v", cmd.ProcessState)
			}
			return Started{}, fmt.Errorf("the worker did not connect: %w", err)
		}
		if shows(conn, token) {
			over.Stop()
			_ = l.Close()
			s.Conn = conn
			return s, nil
		}
		_ = conn.Close() // another program of this machine
	}
}

// shows reports whether a connection begins with the token.
func shows(conn net.Conn, token string) bool {
	got := make([]byte, len(token)+1)
	if conn.SetReadDeadline(time.Now().Add(tokenWait)) != nil {
		return false
	}
	_, err := io.ReadFull(conn, got)
	return err == nil && subtle.ConstantTimeCompare(got, []byte(token+"\n")) == 1 && conn.SetReadDeadline(time.Time{}) == nil
}

// Dial connects to a worker that another program brought, and shows it the token. The address is HOST:PORT:TOKEN, of this
// machine.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	cut := strings.LastIndexByte(address, ':')
	if cut < 0 || strings.ContainsAny(address, "\r\n") {
		return nil, errors.New("want HOST:PORT:TOKEN") // the address holds a secret: it is not shown
	}
	ctx, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address[:cut])
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, address[cut+1:]+"\n"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
