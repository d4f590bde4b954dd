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

// gateway measures the latency that a recording gateway adds to a call, and the cost of an open stream. It also
// measures a plain reverse proxy, for comparison.
func gateway(b *bench) error {
	b.printf("(e) what a gateway adds to a call, measured from the client; client, gateway and upstream share this machine\n")
	b.printf("    target, recording: added at p99 under 1 ms at 1,000 calls a second, under 3 ms at 5,000; under 50 KB a stream\n\n")
	up, err := b.self("upstream", "5ms")
	if err != nil {
		return err
	}
	defer up.stop()
	b.waysHead("calls/s")
	for _, rate := range []int{1000, 5000} {
		if _, err := b.added(up, load{rate: rate, lanes: 200, takes: 4 * time.Second, bytes: 400}); err != nil {
			return err
		}
	}
	b.printf("\n")
	if _, err := b.openStreams("a plain reverse proxy (httputil)", 10_000, func() (*server, error) { return b.self("proxy2", up.url) }); err != nil {
		return err
	}
	_, err = b.gatewayStreams(up)
	b.printf("\n")
	return err
}

// one measures the same for one client that makes one call at a time, with an upstream that answers
// at once: nothing hides what the gateway adds.
func one(b *bench) error {
	b.printf("(f) what a gateway adds for one client that makes one call at a time; the upstream answers at once\n")
	b.printf("    target, recording on a disk: added at p50 at most 0.3 ms\n\n")
	up, err := b.self("upstream", "0s")
	if err != nil {
		return err
	}
	defer up.stop()
	b.waysHead("")
	_, err = b.added(up, load{lanes: 1, calls: 3000, bytes: 400})
	b.printf("\n")
	return err
}

func (b *bench) waysHead(first string) {
	b.printf("    %-8s %-34s %10s %10s %10s %10s %10s\n", first, "way", "p50", "p99", "added p50", "p99", "its CPU")
}

// way is one of the ways to the upstream.
type way struct {
	name string
	*server
	best
	cpu float64 // of the server in the middle, in µs a call, the least of all rounds
}

// added measures a load on every way, in turn: directly first.
func (b *bench) added(up *server, l load) ([]*way, error) {
	ways := []*way{{name: "direct", server: up}}
	for _, w := range []struct {
		name  string
		start func() (*server, error)
	}{
		{"plain reverse proxy (httputil)", func() (*server, error) { return b.self("proxy", up.url) }},
		{"parley gateway, keeping nothing", func() (*server, error) { return b.self("unrecorded", up.url) }},
		{"parley gateway, recording", func() (*server, error) { return b.gateway(up) }},
	} {
		s, err := w.start()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		defer s.stop()
		ways = append(ways, &way{name: w.name, server: s})
	}
	for range 3 {
		for _, w := range ways {
			if err := w.round(l); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	direct, rate := ways[0], ""
	if l.rate > 0 {
		rate = strconv.Itoa(l.rate)
	}
	b.printf("    %-8s %-34s %7.2f ms %7.2f ms\n", rate, direct.name, direct.p50, direct.p99)
	for _, w := range ways[1:] {
		b.printf("    %-8s %-34s %7.2f ms %7.2f ms %7.2f ms %7.2f ms %6.0f µs\n", "", w.name, w.p50, w.p99, w.p50-direct.p50, w.p99-direct.p99, w.cpu)
	}
	return ways, nil
}

// round makes the calls of l once.
func (w *way) round(l load) error {
	l.addr = strings.TrimPrefix(w.url, "http://")
	used := cpuOf(w.cmd.Process.Pid)
	took, err := l.run()
	if err != nil {
		return err
	}
	w.add(took)
	used = (cpuOf(w.cmd.Process.Pid) - used) / float64(l.count()) * 1e6
	if w.cpu == 0 || used < w.cpu {
		w.cpu = used
	}
	return nil
}

// cpuOf returns the CPU time of a process so far, in seconds, or 0 if it is not known.
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

// gatewayStreams measures what open streams cost the gateway, in KB for each.
func (b *bench) gatewayStreams(up *server) (float64, error) {
	return b.openStreams("the gateway", 10_000, func() (*server, error) { return b.gateway(up, "--http2", "--concurrency", "20000") })
}

// openStreams measures what n open streams cost a server in the middle, in KB for each.
func (b *bench) openStreams(name string, n int, begin func() (*server, error)) (float64, error) {
	gw, err := begin()
	if err != nil {
		return 0, err
	}
	defer gw.stop()
	before, err := resident(gw.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	done, err := streams(strings.TrimPrefix(gw.url, "http://"), n)
	if err != nil {
		return 0, err
	}
	defer done()
	opened := time.Since(start)
	time.Sleep(2 * time.Second)
	after, err := resident(gw.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	each := (after - before) / float64(n) * 1024
	b.printf("    %d streams open at once after %.1f s; %s holds %.1f KB for each (%.0f MB, and %.0f MB before)\n", n,
		opened.Seconds(), name, each, after, before)
	return each, nil
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

// self starts a part of this program in a separate process, which exits when its input ends.
func (b *bench) self(part, arg string) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, part, arg)
	cmd.Stderr = os.Stderr
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
