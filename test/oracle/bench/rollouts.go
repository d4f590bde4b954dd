package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What both sides play: episodes of three steps, so many at once.
const (
	rolloutEpisodes = 6000
	rolloutWidth    = 256
)

// rollouts measures episodes a second against an environment server and a model that answer
// at once, over HTTP: `parley run`, which records everything, beside a plain loop that keeps
// nothing. Both are processes of their own, and both share the machine with the servers.
func rollouts(b *bench) error {
	b.printf("(g) rollouts: %d episodes of 3 steps, %d at once, environments and model over HTTP at once; best of three, taken in turn\n", rolloutEpisodes, rolloutWidth)
	b.printf("    target: at least 0.60 of the plain loop's episodes a second, recording included\n\n")
	s, err := b.environments(0)
	if err != nil {
		return err
	}
	defer s.stop()
	plain, recorded := pace{}, pace{}
	for range 3 {
		for _, side := range []struct {
			to  *pace
			run func() (pace, error)
		}{
			{&plain, func() (pace, error) { return b.plainRollouts(s.url) }},
			{&recorded, func() (pace, error) { return b.recordedRollouts(s.url) }},
		} {
			used := cpuOf(s.cmd.Process.Pid)
			one, err := side.run()
			if err != nil {
				return err
			}
			one.servers = (cpuOf(s.cmd.Process.Pid) - used) / rolloutEpisodes * 1e6
			side.to.add(one)
		}
	}
	b.printf("    %-34s %12s %14s %14s\n", "client", "episodes/s", "its CPU, each", "the servers'")
	for _, row := range []struct {
		name string
		pace
	}{{"plain loop", plain}, {"parley run, all of it recorded", recorded}} {
		b.printf("    %-34s %12.0f %11.0f µs %11.0f µs\n", row.name, row.rate, row.cpu, row.servers)
	}
	b.printf("    ratio of episodes a second: %.2f; where cores are all there is to share: %.2f\n\n",
		recorded.rate/plain.rate, (plain.cpu+plain.servers)/(recorded.cpu+recorded.servers))
	if err := b.sessions(s.url); err != nil {
		return err
	}
	return b.waitingRollouts()
}

// pace returns the best of several rounds: other load on the machine only lowers the figure.
type pace struct {
	rate    float64 // episodes a second
	cpu     float64 // microseconds for an episode
	servers float64 // the same, of the servers
	wall    float64 // seconds
	peak    float64 // MB resident
}

func (p *pace) add(one pace) {
	p.rate = max(p.rate, one.rate)
	for _, least := range []struct{ to, of *float64 }{{&p.cpu, &one.cpu}, {&p.servers, &one.servers}, {&p.wall, &one.wall}, {&p.peak, &one.peak}} {
		if *least.to == 0 || *least.of < *least.to {
			*least.to = *least.of
		}
	}
}

// timed runs a process and says how fast its episodes were.
func timed(cmd *exec.Cmd, episodes int) (pace, []byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start).Seconds()
	if err != nil {
		return pace{}, nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	cpu := float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds())
	return pace{rate: float64(episodes) / took, cpu: cpu / float64(episodes), wall: took, peak: peakOf(cmd)}, out, nil
}

// peakOf returns the most memory that a process that ended had resident, in MB, or 0 if the machine does not say.
func peakOf(cmd *exec.Cmd) float64 {
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return float64(use.Maxrss) / 1024
	}
	return 0
}

func (b *bench) plainRollouts(url string) (pace, error) {
	self, err := os.Executable()
	if err != nil {
		return pace{}, err
	}
	p, _, err := timed(exec.Command(self, "plain-rollouts", url), rolloutEpisodes)
	return p, err
}

// recordedRollouts plays the same with parley, into a run file of its own.
func (b *bench) recordedRollouts(url string) (pace, error) {
	p, sum, err := b.play(fmt.Sprintf(`kind: rollout
seed: 1
episodes: %d
providers: {lab: {dialect: openai, base_url: %q, limits: {concurrency: %d}}}
agents: {x: {model: lab/any}}
lineup: {agent: x}
params: {env: arithmetic, env_params: {problems: 3}, servers: [%q], pool: {per_server: %d, startup: %d}}
`, rolloutEpisodes, url+"/v1", rolloutWidth, url, rolloutWidth, rolloutWidth), rolloutEpisodes)
	if err == nil && sum.Calls.Total != 3*rolloutEpisodes {
		err = fmt.Errorf("parley run made %d calls", sum.Calls.Total)
	}
	return p, err
}

// summary is what parley run says at its end.
type summary struct {
	State    string
	Episodes struct{ Failed int }
	Calls    struct{ Total int }
	Attempts int
	Digest   string
	file     string
}

// play plays a plan with parley run into a new run file, and says how fast n of it were. Nothing may fail.
func (b *bench) play(plan string, n int, flags ...string) (p pace, sum summary, err error) {
	dir, err := os.MkdirTemp(b.dir, "play")
	if err != nil {
		return p, sum, err
	}
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		return p, sum, err
	}
	p, out, err := timed(exec.Command(b.parley, append([]string{"run", file, "--json", "--quiet"}, flags...)...), n)
	if err != nil {
		return p, sum, err
	}
	if err := json.Unmarshal(out, &sum); err != nil {
		return p, sum, err
	}
	if sum.State != "complete" || sum.Episodes.Failed > 0 {
		return p, sum, fmt.Errorf("parley run: %.2000s", out)
	}
	sum.file = filepath.Join(dir, "plan.parley")
	return p, sum, nil
}

// plainRollouts is the loop people write: it plays episodes and forgets them.
func plainRollouts(url string) error {
	l := &plainLoop{url: url, client: &http.Client{
		Timeout: 5 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * rolloutWidth},
	}}
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make(chan error, rolloutWidth)
	for range rolloutWidth {
		wg.Go(func() {
			for n := next.Add(1); n <= rolloutEpisodes; n = next.Add(1) {
				if err := l.episode(n); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

type plainLoop struct {
	url    string
	client *http.Client
}

type plainMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// episode plays one.
func (l *plainLoop) episode(n int64) error {
	at := fmt.Sprintf("/arithmetic/plain-%d", n)
	if err := l.do(http.MethodPost, at+"/reset", map[string]any{"env_param": map[string]any{"problems": 3}, "seed": n}, nil); err != nil {
		return err
	}
	for {
		var prompt []plainMessage
		if err := l.do(http.MethodGet, at+"/get_task_prompt", nil, &prompt); err != nil {
			return err
		}
		var answer struct {
			Choices []struct{ Message plainMessage }
		}
		if err := l.do(http.MethodPost, "/v1/chat/completions", map[string]any{"model": "any", "messages": prompt}, &answer); err != nil {
			return err
		}
		var step struct {
			Reward                float64
			Terminated, Truncated bool
		}
		if err := l.do(http.MethodPost, at+"/step", map[string]any{"action": answer.Choices[0].Message.Content}, &step); err != nil {
			return err
		}
		if step.Terminated || step.Truncated {
			return l.do(http.MethodDelete, at, nil, nil)
		}
	}
}

func (l *plainLoop) do(method, path string, body, into any) error {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(method, l.url+path, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var out json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, out)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(out, into)
}
