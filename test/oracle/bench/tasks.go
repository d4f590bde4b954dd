package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// task is something that should be fast, and how fast.
type task struct {
	name, what, aim string
	long            bool // measured only if it is named
	run             func(*bench) (now string, err error)
}

func allTasks() []task {
	return []task{
		{"talks", "1,000 conversations × 6 calls × 1 s, default settings", "at most 1.1 of the ideal", false,
			func(b *bench) (string, error) { return b.talks(1000) }},
		{"many-talks", "10,000 conversations × 6 calls × 1 s, default settings", "at most 1.3 of the plain loop, 450 MB", false,
			func(b *bench) (string, error) { return b.talks(10_000) }},
		{"ask", "`ask` of 12,000 requests over HTTP at zero latency, 64 wide, into a file", "at least 0.75 of the plain loop, at most 0.11 ms CPU", false, (*bench).taskAsk},
		{"run", "`run` of conversations of 8 calls over HTTP at zero latency, 64 wide, all recorded", "at least 0.6 of the plain loop, at most 0.16 ms CPU", false, (*bench).taskRun},
		{"episodes", "200,000 episodes × 6 calls on the built-in simulated provider", "at least 12,000 calls/s, at most 350 MB; report at most 10 s", false, (*bench).taskEpisodes},
		{"refold", "refold; resume of a million calls", "at least 150,000 calls/s; under 7 s", false, (*bench).taskRefold},
		{"engine", "engine and run file with an instant model", "at least 40,000 calls/s", false, func(b *bench) (string, error) {
			rate, err := gobench("./internal/run/runfile", "^BenchmarkEngine$", "240000x", "calls/s")
			return figure(rate) + " calls/s", err
		}},
		{"dispatch", "dispatch alone, instant model", "at least 300,000 calls/s", false, func(*bench) (string, error) {
			rate, err := dispatchRate()
			return figure(rate) + " calls/s", err
		}},
		{"gateway", "gateway: added p99 at 1,000 requests/s, recording; its CPU a call", "at most the plain proxy + 0.5 ms, 1.3 of its CPU", false, (*bench).taskGateway},
		{"stream", "an open stream through the gateway", "at most 50 KB", false, (*bench).taskStream},
		{"build", "first run in a clean clone, modules cached; stripped program", "at most 25 s and 40 MB", false, (*bench).taskBuild},
		{"tests", "`go test ./...` with an empty cache", "at most 4 minutes", true, func(b *bench) (string, error) { return b.command("go", "test", "./...") }},
		{"ci", "`.ci/run` after a change of every file of `llm`, with warm caches", "at most 15 minutes", true, (*bench).taskCI},
	}
}

// tasks measures the tasks that are named, or all but the long ones, and writes their rows into the page.
func tasks(b *bench, names []string) error {
	all := allTasks()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t task) bool { return t.name == name }) {
			var known []string
			for _, t := range all {
				known = append(known, t.name)
			}
			return fmt.Errorf("unknown task %q; want one of %s", name, strings.Join(known, ", "))
		}
	}
	began := time.Now()
	for _, t := range all {
		if len(names) > 0 && !slices.Contains(names, t.name) || len(names) == 0 && t.long {
			continue
		}
		b.printf("%s: %s\n    aim: %s\n", t.name, t.what, t.aim)
		start := time.Now()
		now, err := t.run(b)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		b.printf("    now: %s    (measured in %.0f s)\n", now, time.Since(start).Seconds())
		row := tableRow(t.what, t.aim, now, "`tasks "+t.name+"`")
		if err := updateTable("tasks", "", []string{row}); err != nil {
			return err
		}
	}
	b.printf("%.0f s; the table is in %s\n", time.Since(began).Seconds(), page)
	return nil
}

// figure writes a number of three digits or more with commas.
func figure(n float64) string {
	s := strconv.Itoa(int(n + .5))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// secretsPlan is a plan of the kind secrets with this many episodes, over HTTP if url is not empty.
func secretsPlan(url string, episodes, messages int) string {
	providers, model := "", "sim"
	if url != "" {
		providers, model = fmt.Sprintf("providers: {lab: {dialect: openai, base_url: %q}}\n", url+"/v1"), "lab"
	}
	return fmt.Sprintf("kind: secrets\nseed: 1\n%sagents: {a: {model: %s/small}, b: {model: %s/large}}\nplan: {matrix: {agents: [a, b], swap: true, self: false, repeat: %d}}\nparams: {messages: %d}\n",
		providers, model, model, episodes/2, messages)
}

const talkCalls = 6 // of each conversation

// talks plays n conversations at once with a provider that takes a second for an answer: the shortest of three times, in turn with a plain
// loop, and the most memory.
func (b *bench) talks(n int) (string, error) {
	var plain, first pace
	var peaks [2]float64
	refused := 0.0
	for range 3 {
		one, err := b.talk(n)
		if err != nil {
			return "", err
		}
		plain.add(one.plain)
		first.add(one.first)
		peaks = [2]float64{max(peaks[0], one.first.peak), max(peaks[1], one.plain.peak)}
		refused = max(refused, one.refused)
	}
	return fmt.Sprintf("%.1f s, %.2f of the ideal, %.2f of the plain loop (%.1f s); %.0f MB (%.0f MB); %.1f%% repeated",
		first.wall, first.wall/talkCalls, first.wall/plain.wall, plain.wall, peaks[0], peaks[1], refused), nil
}

// talked is how long conversations took, and the percentage of calls that were refused.
type talked struct {
	plain, first pace
	refused      float64
}

func (b *bench) talk(n int) (t talked, err error) {
	s, err := b.sim("--latency", "1s")
	if err != nil {
		return t, err
	}
	defer s.stop()
	plain, err := b.client(plan{Client: "plain", Dialect: "openai", URL: s.url + "/v1", Calls: n, Concurrency: n, Turns: talkCalls, Bytes: 400, MaxTokens: 64})
	if err != nil {
		return t, err
	}
	t.plain = pace{wall: plain.Walls[0], peak: plain.PeakMB}
	var sum summary
	if t.first, sum, err = b.play(secretsPlan(s.url, n, talkCalls/2), n); err != nil {
		return t, err
	}
	t.refused = 100 * float64(sum.Attempts-sum.Calls.Total) / float64(sum.Attempts)
	return t, nil
}

// width is how many calls are in flight where latency is zero.
const width = 64

// beside measures a command of parley beside a plain loop: so many calls at zero latency, the best of three in turn. It
// also writes how many input tokens a call of each has, as the server counts them.
func (b *bench) beside(calls int, loop plan, measure func(url string) (pace, error)) (string, error) {
	s, err := b.sim()
	if err != nil {
		return "", err
	}
	defer s.stop()
	loop.Client, loop.Dialect, loop.URL, loop.Concurrency, loop.MaxTokens = "plain", "openai", s.url+"/v1", width, 64
	var plain, ours pace
	var input [2]int
	for range 3 {
		r, err := b.client(loop)
		if err != nil {
			return "", err
		}
		plain.add(pace{rate: float64(calls) / r.Walls[0], cpu: r.CPU / float64(calls) * 1e6})
		after, err := s.stats()
		if err != nil {
			return "", err
		}
		input[0] = after.Tokens.Input - input[1]
		one, err := measure(s.url)
		if err != nil {
			return "", err
		}
		ours.add(one)
		if after, err = s.stats(); err != nil {
			return "", err
		}
		input[1] = after.Tokens.Input - input[0]
	}
	return fmt.Sprintf("%s calls/s, %.2f of the plain loop (%s); %.3f ms CPU a call (%.3f); %d input tokens a call (%d)",
		figure(ours.rate), ours.rate/plain.rate, figure(plain.rate), ours.cpu/1000, plain.cpu/1000, input[1]/calls/3, input[0]/calls/3), nil
}

func (b *bench) taskAsk() (string, error) {
	const calls = 12_000
	in, err := b.requests(calls)
	if err != nil {
		return "", err
	}
	return b.beside(calls, plan{Calls: calls, Bytes: 400}, func(url string) (pace, error) { return b.ask(in, calls, url, "--concurrency", strconv.Itoa(width)) })
}

// requests writes a file of n requests.
func (b *bench) requests(n int) (string, error) {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"id":"%d","prompt":"%d %s","max_tokens":64}`+"\n", i, i, strings.Repeat("word ", 80))
	}
	file := filepath.Join(b.dir, "requests.jsonl")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
}

// ask asks all requests of a file with parley ask, into a file.
func (b *bench) ask(in string, calls int, url string, flags ...string) (pace, error) {
	out := filepath.Join(b.dir, "answers.jsonl")
	defer os.Remove(out)
	args := append([]string{"ask", in, "--model", "lab/any", "--dialect", "openai", "--base-url", url + "/v1", "--out", out}, flags...)
	p, _, err := timed(exec.Command(b.parley, args...), calls)
	return p, err
}

func (b *bench) taskRun() (string, error) {
	const episodes, calls = 2000, 8
	loop := plan{Calls: episodes, Turns: calls, Bytes: 170} // conversations that have about as many tokens
	return b.beside(episodes*calls, loop, func(url string) (pace, error) {
		p, sum, err := b.play(secretsPlan(url, episodes, calls/2), episodes*calls, "--concurrency", strconv.Itoa(width))
		if err == nil && sum.Calls.Total != episodes*calls {
			err = fmt.Errorf("%d calls", sum.Calls.Total)
		}
		return p, err
	})
}

func (b *bench) taskEpisodes() (string, error) {
	const episodes, calls = 200_000, 6
	p, sum, err := b.play(secretsPlan("", episodes, calls/2), episodes*calls)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(filepath.Dir(sum.file))
	report, _, err := timed(exec.Command(b.parley, "report", sum.file), 1)
	return fmt.Sprintf("%s calls/s, %.3f ms CPU a call, %.0f MB; report %.1f s, %.0f MB", figure(p.rate), p.cpu/1000, p.peak, report.wall, report.peak), err
}

func (b *bench) taskRefold() (string, error) {
	rate, err := gobench("./internal/run/runfile", "^BenchmarkRefold$", "240000x", "calls/s")
	if err != nil {
		return "", err
	}
	resume, err := gobench("./internal/run/runfile", "^BenchmarkResume$", "1x", "ns/op")
	return fmt.Sprintf("%s calls/s; %.1f s", figure(rate), resume/1e9), err
}

// gobench runs a benchmark of the tests and returns one of its figures.
func gobench(dir, name, times, unit string) (float64, error) {
	cmd := exec.Command("go", "test", dir, "-run", "^$", "-bench", name, "-benchtime", times, "-timeout", "30m")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	m := regexp.MustCompile(`([0-9.]+) ` + regexp.QuoteMeta(unit)).FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%s printed no %s:\n%s", name, unit, out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

func (b *bench) taskGateway() (string, error) {
	up, err := b.self("upstream", "5ms")
	if err != nil {
		return "", err
	}
	defer up.stop()
	ways, err := b.added(up, load{rate: 1000, lanes: 200, takes: 4 * time.Second, bytes: 400})
	if err != nil {
		return "", err
	}
	direct, proxy, ours := ways[0], ways[1], ways[len(ways)-1]
	return fmt.Sprintf("%.1f ms, %.0f µs; plain proxy %.1f ms, %.0f µs: %+.1f ms, %.2f of its CPU",
		ours.p99-direct.p99, ours.cpu, proxy.p99-direct.p99, proxy.cpu, ours.p99-proxy.p99, ours.cpu/proxy.cpu), nil
}

func (b *bench) taskStream() (string, error) {
	up, err := b.self("upstream", "5ms")
	if err != nil {
		return "", err
	}
	defer up.stop()
	each, err := b.gatewayStreams(up)
	return fmt.Sprintf("%.1f KB", each), err
}

func (b *bench) taskBuild() (string, error) {
	first, err := b.command("go", "run", "./cmd/parley", "--version")
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, "stripped")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./cmd/parley")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; %.1f MB", first, float64(info.Size())/1e6), nil
}

// taskCI times .ci/run in a clone after a change of every file of llm, which nearly every package imports, so that it is compiled, linted and tested again.
// Caches are as they are: run .ci/run once before.
func (b *bench) taskCI() (string, error) {
	clone := filepath.Join(b.dir, "clone")
	if out, err := exec.Command("git", "clone", "--quiet", "../..", clone).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(clone, "llm", "*.go"))
	if err != nil {
		return "", err
	}
	more := strings.Repeat("// One line more.\n", 1+int(time.Now().Unix()%1000)) // another number each time, or what was compiled the last time is in the cache
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		text = bytes.Replace(text, []byte("package llm\n"), []byte("package llm\n\n"+more), 1)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return "", err
		}
	}
	return timedIn(clone, nil, ".ci/run")
}

// command times a command at the top of the tree, with an empty build cache.
func (b *bench) command(name string, args ...string) (string, error) {
	cache, err := os.MkdirTemp(b.dir, "cache")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(cache)
	return timedIn("../..", []string{"GOCACHE=" + cache}, name, args...)
}

// timedIn times a command in a folder, with these variables of the environment.
func timedIn(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out[max(0, len(out)-4000):])
	}
	return fmt.Sprintf("%.0f s", time.Since(start).Seconds()), nil
}
