package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// gateway measures what a recording gateway adds to a call, and what an open stream costs it.
func gateway(b *bench) error {
	b.printf("(e) gateway, recording on, measured from the client; client, gateway and upstream share this machine\n")
	b.printf("    target: added at p99 under 1 ms at 1,000 calls a second, under 3 ms at 5,000; under 30 KB a stream\n\n")
	up, err := b.upstream("5ms")
	if err != nil {
		return err
	}
	defer up.stop()
	b.printf("    %-10s %10s %10s %10s %10s %10s %10s %12s\n", "calls/s", "direct p50", "p99", "via p50", "p99", "added p50", "p99", "its CPU")
	for _, rate := range []int{1000, 5000} {
		if err := b.added(up, rate); err != nil {
			return err
		}
	}
	b.printf("\n")
	return b.openStreams(up, 10_000)
}

// added measures calls of one rate, directly and through a gateway, in turn.
func (b *bench) added(up *server, rate int) error {
	gw, err := b.gateway(up)
	if err != nil {
		return err
	}
	defer gw.stop()
	direct, via := best{}, best{}
	load := load{rate: rate, lanes: 200, takes: 4 * time.Second, bytes: 400}
	cpu := 0.0 // of the gateway, least of all rounds
	for range 3 {
		used := cpuOf(gw.cmd.Process.Pid)
		for _, way := range []struct {
			url string
			to  *best
		}{{up.url, &direct}, {gw.url, &via}} {
			load.addr = strings.TrimPrefix(way.url, "http://")
			took, err := load.run()
			if err != nil {
				return err
			}
			way.to.add(took)
		}
		used = (cpuOf(gw.cmd.Process.Pid) - used) / (float64(rate) * load.takes.Seconds()) * 1e6
		if cpu == 0 || used < cpu {
			cpu = used
		}
	}
	b.printf("    %-10d %7.2f ms %7.2f ms %7.2f ms %7.2f ms %7.2f ms %7.2f ms %6.0f µs each\n", rate,
		direct.p50, direct.p99, via.p50, via.p99, via.p50-direct.p50, via.p99-direct.p99, cpu)
	return nil
}

// cpuOf is the CPU time of a process so far, in seconds; 0 where it cannot be told.
func cpuOf(pid int) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // clock ticks, of which Linux counts a hundred a second
}

// best keeps the least of each percentile over several rounds, in milliseconds: whatever
// else the machine does only adds.
type best struct{ p50, p99 float64 }

func (b *best) add(sorted []time.Duration) {
	at := func(q float64) float64 { return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000 }
	if p := at(.5); b.p50 == 0 || p < b.p50 {
		b.p50 = p
	}
	if p := at(.99); b.p99 == 0 || p < b.p99 {
		b.p99 = p
	}
}

// openStreams measures what open streams cost the gateway.
func (b *bench) openStreams(up *server, n int) error {
	gw, err := b.gateway(up, "--http2", "--concurrency", strconv.Itoa(2*n))
	if err != nil {
		return err
	}
	defer gw.stop()
	before, err := resident(gw.cmd.Process.Pid)
	if err != nil {
		return err
	}
	start := time.Now()
	done, err := streams(strings.TrimPrefix(gw.url, "http://"), n)
	if err != nil {
		return err
	}
	defer done()
	opened := time.Since(start)
	time.Sleep(2 * time.Second)
	after, err := resident(gw.cmd.Process.Pid)
	if err != nil {
		return err
	}
	b.printf("    %d streams open at once after %.1f s; the gateway holds %.1f KB for each (%.0f MB, and %.0f MB before)\n\n", n,
		opened.Seconds(), (after-before)/float64(n)*1024, after, before)
	return nil
}

// resident is the memory of a process now, in MB.
func resident(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0, errors.New("statm says nothing")
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20), err
}

// gateway starts a recording gateway before up.
func (b *bench) gateway(up *server, flags ...string) (*server, error) {
	dir, err := os.MkdirTemp(filepath.Dir(b.parley), "gateway")
	if err != nil {
		return nil, err
	}
	args := append([]string{"gateway", "--addr", "127.0.0.1:0", "--upstream", "lab=" + up.url + "/v1", "--out", filepath.Join(dir, "run.parley"), "--concurrency", "1000", "--grace", "1s"}, flags...)
	return listening(exec.Command(b.parley, args...))
}

// upstream starts the upstream in a process of its own.
func (b *bench) upstream(delay string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "upstream", delay)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s, err := listening(cmd)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	s.in = in
	return s, nil
}

// listening starts a server and waits until it says where it listens.
func listening(cmd *exec.Cmd) (*server, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		return nil, fmt.Errorf("said %q: %w", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return &server{url: url, cmd: cmd}, nil
}
