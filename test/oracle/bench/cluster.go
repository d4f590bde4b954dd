package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clusterPart measures something of clusters. It returns rows for the table.
type clusterPart struct {
	name string
	run  func(*bench) ([]clusterRow, error)
}

// clusterRow is what is measured, how it should be, and what it is.
type clusterRow struct{ what, wanted, measured string }

// clusters measures runs that several processes play: the parts that are named, or all. It writes their rows into the page.
func clusters(b *bench, names []string) error {
	parts := []clusterPart{{"speed", clusterSpeed}, {"cpu", clusterCPU}, {"limits", clusterLimits}, {"failures", clusterFailures}}
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p clusterPart) bool { return p.name == name }) {
			return fmt.Errorf("unknown part %q of cluster; want speed, cpu, limits or failures", name)
		}
	}
	began := time.Now()
	about := fmt.Sprintf("Measured on %s with Go %s on %d cores; the load average was %s before.",
		began.Format("2006-01-02"), strings.TrimPrefix(runtime.Version(), "go"), runtime.NumCPU(), loadAverage())
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		start := time.Now()
		measured, err := p.run(b)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		var rows []string
		for _, r := range measured {
			b.printf("%s\n    wanted:   %s\n    measured: %s\n", r.what, r.wanted, r.measured)
			rows = append(rows, tableRow(r.measured, r.wanted, r.what))
		}
		b.printf("%s took %.0f s\n", p.name, time.Since(start).Seconds())
		if err := updateTable("cluster", about, rows); err != nil {
			return err
		}
	}
	b.printf("%.0f s; the table is in %s\n", time.Since(began).Seconds(), page)
	return nil
}

// loadAverage returns how many processes wanted to run in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// member is a process of a cluster that can be killed and started again.
type member struct {
	program string
	args    []string
	cmd     *exec.Cmd
	stderr  *bytes.Buffer
	done    chan struct{} // closed when it has ended
}

func (b *bench) member(args ...string) (*member, error) {
	m := &member{program: b.parley, args: args}
	return m, m.start()
}

func (m *member) start() error {
	m.cmd, m.stderr, m.done = exec.Command(m.program, m.args...), &bytes.Buffer{}, make(chan struct{})
	m.cmd.Env = append(os.Environ(), "PARLEY_CLUSTER_TOKEN=bench bench bench")
	m.cmd.Stderr = m.stderr
	if err := m.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		_ = cmd.Wait() // most are killed
	}(m.cmd, m.done)
	return nil
}

// kill kills the process and waits until it has ended.
func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.done
}

// ended returns an error if the process has ended.
func (m *member) ended() error {
	select {
	case <-m.done:
		return fmt.Errorf("parley %s has ended: %s", strings.Join(m.args, " "), m.stderr)
	default:
		return nil
	}
}

// cluster is a run that several processes play.
type cluster struct {
	b       *bench
	url     string // of the hub
	hub     []*member
	workers []*member
	run     *member // nil before play
}

// cluster starts a hub of so many nodes, and workers. Without nodes, a single process plays.
func (b *bench) cluster(nodes, workers int) (c *cluster, err error) {
	c = &cluster{b: b}
	if nodes == 0 {
		return c, nil
	}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	addresses, err := freeAddresses(2 * nodes)
	if err != nil {
		return c, err
	}
	c.url = "nats://" + strings.Join(addresses[:nodes], ",nats://")
	for i := range nodes {
		args := []string{"hub", "--listen", addresses[i]}
		if nodes > 1 {
			folder, err := os.MkdirTemp(b.dir, "node")
			if err != nil {
				return c, err
			}
			args = append(args, "--join", strings.Join(addresses[nodes:], ","), "--route", addresses[nodes+i], "--folder", folder)
		}
		node, err := b.member(args...)
		if err != nil {
			return c, err
		}
		c.hub = append(c.hub, node)
	}
	for range workers {
		if err := c.join(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// play begins a run.
func (c *cluster) play(plan string, flags ...string) error {
	dir, err := os.MkdirTemp(c.b.dir, "cluster")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		return err
	}
	args := append([]string{"run", file, "--quiet"}, flags...)
	if c.url != "" {
		args = append(args, "--cluster", c.url)
	}
	c.run, err = c.b.member(args...)
	return err
}

// join starts another worker.
func (c *cluster) join() error {
	w, err := c.b.member("worker", "--cluster", c.url, "--quiet")
	if err == nil {
		c.workers = append(c.workers, w)
	}
	return err
}

func (c *cluster) all() []*member {
	all := slices.Concat(c.workers, c.hub)
	if c.run != nil {
		all = append(all, c.run)
	}
	return all
}

// stop kills all processes.
func (c *cluster) stop() {
	for _, m := range c.all() {
		m.kill()
	}
}

// cpu returns the seconds of CPU that all processes have used.
func (c *cluster) cpu() (sum float64) {
	for _, m := range c.all() {
		sum += cpuOf(m.cmd.Process.Pid)
	}
	return sum
}

// await waits until the provider has seen something of the run.
func (c *cluster) await(s *server, seen func(stats) bool) error {
	for range 600 {
		if err := c.run.ended(); err != nil {
			return err
		}
		st, err := s.stats()
		if err != nil || seen(st) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the run does not begin: %s", c.run.stderr)
}

// freeAddresses returns addresses of this machine that nobody listens at, and that systems do not give out by themselves.
func freeAddresses(n int) (all []string, err error) {
	for tries := 0; len(all) < n; tries++ {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(10_000+rand.IntN(20_000)))
		switch {
		case err == nil:
			defer l.Close()
			all = append(all, l.Addr().String())
		case tries > 1000:
			return nil, err
		}
	}
	return all, nil
}

// What is played to measure speed.
const (
	clusterWidth  = 500             // calls in flight of one worker
	clusterSettle = 3 * time.Second // until all are in flight and spread
	clusterFor    = 12 * time.Second
)

// measure measures a run once it has so many calls in flight: calls a second, and the CPU of all processes for a call.
func (c *cluster) measure(s *server, inFlight int) (r pace, err error) {
	if err := c.await(s, func(st stats) bool { return st.InFlight >= inFlight*9/10 }); err != nil {
		return r, err
	}
	time.Sleep(clusterSettle)
	from, used := time.Now(), c.cpu()
	before, err := s.stats()
	if err != nil {
		return r, err
	}
	time.Sleep(clusterFor)
	used = c.cpu() - used
	after, err := s.stats()
	if err != nil {
		return r, err
	}
	calls := float64(after.OK - before.OK)
	return pace{rate: calls / time.Since(from).Seconds(), cpu: used / calls * 1e6}, c.run.ended()
}

// clusterSpeed measures calls a second at a latency of a second: of one process, one worker and four.
func clusterSpeed(b *bench) ([]clusterRow, error) {
	const workers = 4
	var got [3]pace
	for i, n := range []int{0, 1, workers} {
		s, err := b.sim("--latency", "500ms..1500ms") // so that calls do not all come at once
		if err != nil {
			return nil, err
		}
		defer s.stop()
		c, err := b.cluster(min(1, n), n)
		if err != nil {
			return nil, err
		}
		defer c.stop()
		inFlight := clusterWidth * max(1, n)
		if err := c.play(secretsPlan(s.url, 200_000, 4), "--set", "limits.concurrency="+strconv.Itoa(inFlight)); err != nil {
			return nil, err
		}
		if got[i], err = c.measure(s, inFlight); err != nil {
			return nil, err
		}
		c.stop()
	}
	single, one, four := got[0], got[1], got[2]
	return []clusterRow{
		{fmt.Sprintf("one worker with %d calls in flight of 1 s, beside a single process", clusterWidth), "at least 0.97",
			fmt.Sprintf("%.3f: %s calls/s, %s in a single process", one.rate/single.rate, figure(one.rate), figure(single.rate))},
		{fmt.Sprintf("%d workers with %d calls in flight each, beside one worker", workers, clusterWidth), "at least 3.4",
			fmt.Sprintf("%.2f: %s calls/s; %.0f µs of CPU a call, one worker %.0f, a single process %.0f", four.rate/one.rate, figure(four.rate), four.cpu, one.cpu, single.cpu)},
	}, nil
}

// clusterCPU measures the CPU of a call beside that of a single process, at full speed.
func clusterCPU(b *bench) ([]clusterRow, error) {
	const episodes, calls = 3000, 8
	s, err := b.sim()
	if err != nil {
		return nil, err
	}
	defer s.stop()
	var single, together pace
	for range 2 {
		for _, side := range []struct {
			to    *pace
			flags []string
		}{{&single, nil}, {&together, []string{"--workers", "1"}}} {
			p, sum, err := b.play(secretsPlan(s.url, episodes, calls/2), episodes*calls, append(side.flags, "--concurrency", strconv.Itoa(width))...)
			if err != nil {
				return nil, err
			}
			if sum.Calls.Total != episodes*calls {
				return nil, fmt.Errorf("%d calls", sum.Calls.Total)
			}
			side.to.add(p) // of the workers too: the process has waited for them
		}
	}
	return []clusterRow{{
		"CPU that a worker, a coordinator and a hub take more than a single process for a call, at zero latency", "at most 100 µs",
		fmt.Sprintf("%.0f µs: %.0f, a single process %.0f; %s calls/s, a single process %s", together.cpu-single.cpu, together.cpu, single.cpu, figure(together.rate), figure(single.rate)),
	}}, nil
}
