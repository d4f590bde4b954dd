package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
)

// server is a running command that serves.
type server struct {
	url string
	cmd *exec.Cmd
	in  io.Closer // what it reads, if that keeps it running
}

// sim starts a simulated provider.
func (b *bench) sim(flags ...string) (*server, error) {
	return b.serve("sim", append([]string{"--addr", "127.0.0.1:0"}, flags...)...)
}

// serve starts a command that serves.
func (b *bench) serve(name string, args ...string) (*server, error) {
	cmd := exec.Command(b.parley, append([]string{name}, args...)...)
	cmd.Stderr = os.Stderr
	return listening(cmd)
}

// stop ends the server and waits for it.
func (s *server) stop() {
	if s.in != nil {
		_ = s.in.Close()
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// stats are what the server itself counted.
type stats struct {
	Requests    int `json:"requests"`
	OK          int `json:"ok"`
	RateLimited int `json:"rate_limited"`
	InFlight    int `json:"in_flight"`
	InFlightMax int `json:"in_flight_max"`
	Tokens      struct{ Input, Output int }
}

func (s *server) stats() (stats, error) {
	var out stats
	resp, err := http.Get(s.url + "/stats")
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	return out, json.NewDecoder(resp.Body).Decode(&out)
}
