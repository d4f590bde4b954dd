package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley"
	"parley/worlds"
)

// What a soak plays, again and again, and the faults of the provider: those that a retry repairs.
const (
	soakEpisodes = 200
	soakKills    = 3 // of each run that is killed
	soakLatency  = "20ms..60ms"
	soakFaults   = "error500=0.03,overloaded=0.02,reset=0.02,cut=0.02,html=0.01"
)

// soak plays the same plan for a long time against a provider with faults: in processes that are killed and resumed,
// and in this process through the library. Every run must have the digest of a run without faults and kills, and
// memory, goroutines and descriptors must not grow.
func soak(b *bench, args []string) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	duration := flags.Duration("for", 10*time.Minute, "how long to play")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "decides when runs are killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &soaking{b: b, chance: rand.New(rand.NewPCG(*seed, 0))}
	b.printf("soak for %v, seed %d: %d episodes of 6 calls; faults %s; %d kills a run\n", *duration, *seed, soakEpisodes, soakFaults, soakKills)
	if err := s.undisturbed(); err != nil {
		return err
	}
	server, err := b.sim("--latency", soakLatency, "--faults", soakFaults)
	if err != nil {
		return err
	}
	defer server.stop()
	s.server = server.cmd.Process.Pid
	s.plan = filepath.Join(b.dir, "soak.yaml")
	if err := os.WriteFile(s.plan, []byte(secretsPlan(server.url, soakEpisodes, 3)), 0o600); err != nil {
		return err
	}
	b.printf("%6s %6s %6s  %s\n", "round", "s", "kills", "heap MB, goroutines, descriptors; the server's MB and descriptors; the killed run's")
	began := time.Now()
	for round := 1; round <= 3 || time.Since(began) < *duration; round++ {
		one, err := s.round()
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		s.samples = append(s.samples, one)
		b.printf("%6d %6.0f %6d  %6.1f %4.0f %4.0f; %6.1f %4.0f; %6.1f %4.0f\n", round, time.Since(began).Seconds(), s.kills,
			one["heap, MB"], one["goroutines"], one["descriptors"], one["the server's memory, MB"], one["the server's descriptors"], one["a killed run's memory, MB"], one["a killed run's descriptors"])
	}
	if err := grown(s.samples); err != nil {
		return err
	}
	b.printf("passed: %d runs with %d kills have the digest %s; nothing grew\n", 2*len(s.samples), s.kills, s.digest)
	return nil
}

// soaking is the state of a soak.
type soaking struct {
	b       *bench
	chance  *rand.Rand
	plan    string
	server  int           // its process
	digest  string        // of every run
	takes   time.Duration // a run without faults and kills
	kills   int
	samples []map[string]float64
}

// undisturbed plays the plan with a provider without faults.
func (s *soaking) undisturbed() error {
	clean, err := s.b.sim("--latency", soakLatency)
	if err != nil {
		return err
	}
	defer clean.stop()
	p, sum, err := s.b.play(secretsPlan(clean.url, soakEpisodes, 3), soakEpisodes)
	s.digest, s.takes = sum.Digest, time.Duration(p.wall*float64(time.Second))
	return err
}

// round plays the plan twice and returns what was held afterwards.
func (s *soaking) round() (map[string]float64, error) {
	dir, err := os.MkdirTemp(s.b.dir, "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	killed, err := s.killed(filepath.Join(dir, "killed.parley"))
	if err != nil {
		return nil, fmt.Errorf("killed and resumed: %w", err)
	}
	res, err := parley.Play(context.Background(), parley.Run{Kinds: worlds.Standard(), PlanFile: s.plan, File: filepath.Join(dir, "here.parley")})
	if err != nil {
		return nil, err
	}
	if res.Digest != s.digest || res.Failed > 0 {
		return nil, fmt.Errorf("in this process: digest %s, want %s; %d episodes failed: %s", res.Digest, s.digest, res.Failed, res.Fault)
	}
	own, err := holding(os.Getpid())
	if err != nil {
		return nil, err
	}
	server, err := holding(s.server)
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		"heap, MB": heap() / (1 << 20), "goroutines": float64(runtime.NumGoroutine()), "descriptors": own.descriptors,
		"the server's memory, MB": server.memory, "the server's descriptors": server.descriptors,
		"a killed run's memory, MB": killed.memory, "a killed run's descriptors": killed.descriptors,
	}, nil
}

// killed plays the plan in processes that are killed, until one completes it. It returns the most that one held.
func (s *soaking) killed(file string) (peak process, err error) {
	for kill := range soakKills + 1 {
		cmd := exec.Command(s.b.parley, "run", s.plan, "--out", file, "--json", "--quiet")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			return peak, err
		}
		ended := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { peak = watch(cmd.Process.Pid, peak, ended) })
		if kill < soakKills {
			after := time.AfterFunc(time.Duration((.1+.6*s.chance.Float64())*float64(s.takes)), func() { _ = cmd.Process.Kill() })
			defer after.Stop()
		}
		err := cmd.Wait()
		close(ended)
		wg.Wait()
		if cmd.ProcessState.ExitCode() < 0 { // by a signal
			s.kills++
			continue
		}
		var sum summary
		if err := errors.Join(err, json.Unmarshal(stdout.Bytes(), &sum)); err != nil {
			return peak, fmt.Errorf("%w: %s", err, stderr.String())
		}
		if sum.Digest != s.digest || sum.State != "complete" || sum.Episodes.Failed > 0 {
			return peak, fmt.Errorf("%s, digest %s, want %s; %d episodes failed", sum.State, sum.Digest, s.digest, sum.Episodes.Failed)
		}
		return peak, nil
	}
	return peak, errors.New("no process was left to complete the run")
}

// process is what a process holds.
type process struct{ memory, descriptors float64 }

// watch returns the most that a process held, until it ended.
func watch(pid int, peak process, ended <-chan struct{}) process {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return peak
		case <-tick.C:
			if now, err := holding(pid); err == nil { // it may have ended
				peak = process{max(peak.memory, now.memory), max(peak.descriptors, now.descriptors)}
			}
		}
	}
}

// holding returns what a process holds now.
func holding(pid int) (process, error) {
	memory, err := resident(pid)
	if err != nil {
		return process{}, err
	}
	open, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	return process{memory, float64(len(open))}, err
}

// grown reports what grew in a process that lasted: its median in the last third of the rounds is well above that in the first third. The first
// round warms up. Memory moves by a few MB with the timing of collections, and descriptors with connections that
// are still idle; goroutines must return to what they were.
func grown(samples []map[string]float64) error {
	slack := map[string]struct{ share, abs float64 }{
		"heap, MB": {.15, 4}, "goroutines": {0, 0.5}, "descriptors": {0, 2},
		"the server's memory, MB": {.25, 16}, "the server's descriptors": {.25, 16},
	}
	if len(samples) > 2 {
		samples = samples[1:]
	}
	third := max(1, len(samples)/3)
	median := func(of []map[string]float64, name string) float64 {
		var all []float64
		for _, s := range of {
			all = append(all, s[name])
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	var err error
	for name, may := range slack {
		first, last := median(samples[:third], name), median(samples[len(samples)-third:], name)
		if last > first*(1+may.share)+may.abs {
			err = errors.Join(err, fmt.Errorf("%s grew from %.1f to %.1f in %d rounds", name, first, last, len(samples)))
		}
	}
	return err
}
