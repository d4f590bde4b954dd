package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// peerLimit is how long a program may take for one cell of the table.
const peerLimit = 3 * time.Minute

// peerTask is the same work for every program.
type peerTask struct {
	URL           string `json:"url"`
	Conversations int    `json:"conversations"`
	Turns         int    `json:"turns"`
	Width         int    `json:"width"` // conversations at once
	Prompt        string `json:"prompt"`
	Limited       bool   `json:"-"`        // the server has a limit
	Rollouts      bool   `json:"rollouts"` // episodes of an environment server instead; aiohttp only
}

// peerResult is what a program did.
type peerResult struct {
	Version string  `json:"version"`
	Seconds float64 `json:"seconds"` // from the first call to the last
	CPU     float64 `json:"cpu"`     // seconds
	Failed  int     `json:"failed"`
	Error   string  `json:"error"`
	peak    float64 // MB
	late    bool    // stopped at peerLimit
	stats           // of the server
}

// peer is a program that makes calls.
type peer struct {
	name  string // as the command line names it
	calls int    // at zero latency: so many that they take some seconds
	run   func(*bench, peer, peerTask) (peerResult, error)
}

func allPeers() []peer {
	return []peer{
		{"parley", 12_000, (*bench).parleyPeer},
		{"parley-headers", 0, (*bench).parleyPeer},
		{"go", 12_000, (*bench).goPeer},
		{"aiohttp", 6000, (*bench).pythonPeer},
		{"openai", 2000, (*bench).pythonPeer},
		{"inspect_ai", 1500, (*bench).pythonPeer},
		{"litellm", 1000, (*bench).pythonPeer},
	}
}

// peers measures other programs on the same tasks and writes the table into the page. All programs do a task one after the other before the next
// task begins, so that what else the machine does falls on all of them. --small makes a check of a few minutes, whose figures mean nothing.
func peers(b *bench, args []string) error {
	names := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--small" })
	small := len(names) < len(args)
	all := allPeers()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p peer) bool { return p.name == name }) {
			return fmt.Errorf("unknown program %q; want --small, parley, parley-headers, go, aiohttp, openai, inspect_ai or litellm", name)
		}
	}
	all = slices.DeleteFunc(all, func(p peer) bool { return len(names) > 0 && !slices.Contains(names, p.name) })
	about := fmt.Sprintf("Measured on %s with %s and %s on %d cores; the load average was %s before.", time.Now().Format(time.DateOnly), pythonVersion(), strings.Replace(runtime.Version(), "go", "Go ", 1), runtime.NumCPU(), loadAverage())
	rows := make([]peerRow, len(all))
	for _, column := range peerColumns(small) {
		for i, p := range all {
			text := rows[i].cell(b, p, column)
			b.printf("%s: %s: %s\n", p.name, column.name, text)
		}
	}
	var lines []string
	for i, p := range all {
		lines = append(lines, rows[i].line(p))
		b.printf("%s\n", lines[i])
	}
	if small {
		return nil
	}
	return updateTable("peers", about, lines)
}

// peerColumn is a task, with the flags of the server and what is shown of a result.
type peerColumn struct {
	name  string
	task  func(peer) peerTask // no conversations: the program does not do it
	flags []string
	show  func(peerTask, peerResult) string
}

// peerColumns lists the tasks.
func peerColumns(small bool) []peerColumn {
	size := func(n int) int {
		if small {
			n /= 20
		}
		return n
	}
	talks := func(n int) func(peer) peerTask {
		return func(p peer) peerTask {
			if p.calls == 0 {
				return peerTask{}
			}
			return peerTask{Conversations: size(n), Turns: 5, Width: size(n)}
		}
	}
	talk := func(_ peerTask, r peerResult) string { return fmt.Sprintf("%.1f s, %.0f MB", r.Seconds, r.peak) }
	return []peerColumn{
		{"calls", func(p peer) peerTask { return peerTask{Conversations: size(p.calls), Turns: 1, Width: width} }, nil, func(t peerTask, r peerResult) string {
			return figure(float64(t.Conversations)/r.Seconds) + fmt.Sprintf(" | %.2f ms", r.CPU/float64(t.Conversations)*1000)
		}},
		{"1,000 conversations", talks(1000), []string{"--latency", "1s"}, talk},
		{"10,000 conversations", talks(10_000), []string{"--latency", "1s"}, talk},
		{"a limit", func(peer) peerTask { return peerTask{Conversations: size(1500), Turns: 1, Width: width, Limited: true} }, []string{"--latency", "500ms", "--rpm", "3000", "--burst", "1s"}, func(_ peerTask, r peerResult) string {
			return fmt.Sprintf("%.2f, %.1f%%", float64(r.OK)/r.Seconds/50, 100*float64(r.RateLimited)/float64(r.Requests))
		}},
	}
}

// peerRow is what a program did so far.
type peerRow struct {
	version string
	cells   []string
}

// cell does a task. What a program cannot do is a cell that says so.
func (w *peerRow) cell(b *bench, p peer, c peerColumn) string {
	t := c.task(p)
	t.Prompt = strings.Repeat("word ", 80)
	text, none := "", ""
	if c.name == "calls" {
		none = " | " // it is two cells
	}
	if t.Conversations > 0 {
		r, err := p.cell(b, t, c.flags...)
		switch {
		case err != nil:
			text = "failed: " + strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%.120s", err.Error()), "\n", " "), "|", "/") + none
		case r.late:
			text = fmt.Sprintf("not done in %.0f s: %s of %s calls, %.0f MB", peerLimit.Seconds(), figure(float64(r.OK)), figure(float64(t.Conversations*t.Turns)), r.peak) + none
		default:
			w.version, text = r.Version, c.show(t, r)
			if r.Failed > 0 {
				text += fmt.Sprintf("; %d failed", r.Failed)
			}
		}
	} else {
		text = none
	}
	w.cells = append(w.cells, text)
	return text
}

// line is the row of the table.
func (w *peerRow) line(p peer) string {
	title := map[string]string{
		"parley": "Parley: `ask`, `run`; limit set", "parley-headers": "Parley: `ask`, limit learned", "go": "a plain Go loop, net/http", "aiohttp": "aiohttp, a plain loop",
		"openai": "openai SDK", "inspect_ai": "inspect_ai", "litellm": "litellm",
	}[p.name]
	return tableRow(slices.Concat([]string{strings.TrimSpace(title + " " + w.version)}, w.cells, []string{"`peers " + p.name + "`"})...)
}

func pythonVersion() string {
	out, err := exec.Command("python3", "--version").Output()
	if err != nil {
		return "no Python"
	}
	return strings.TrimSpace(string(out))
}

// cell does one task with a server of its own.
func (p peer) cell(b *bench, t peerTask, flags ...string) (peerResult, error) {
	s, err := b.sim(flags...)
	if err != nil {
		return peerResult{}, err
	}
	defer s.stop()
	t.URL = s.url
	r, err := p.run(b, p, t)
	if err != nil {
		return r, err
	}
	r.stats, err = s.stats()
	return r, err
}

// parleyPeer uses parley ask for single calls, and parley run for conversations. Its time is that of the whole process.
func (b *bench) parleyPeer(p peer, t peerTask) (peerResult, error) {
	calls := t.Conversations * t.Turns
	var took pace
	var err error
	switch {
	case t.Turns > 1:
		// In these episodes the agent answers so many problems. They are recorded.
		took, _, err = b.play(fmt.Sprintf("kind: rollout\nseed: 1\nepisodes: %d\nproviders: {lab: {dialect: openai, base_url: %q}}\nagents: {x: {model: lab/any, max_tokens: 64}}\nlineup: {agent: x}\nparams: {env: arithmetic, env_params: {problems: %d}}\n",
			t.Conversations, t.URL+"/v1", t.Turns), calls)
	default:
		var in string
		if in, err = b.requests(calls); err != nil {
			return peerResult{}, err
		}
		flags := []string{"--concurrency", fmt.Sprint(t.Width)}
		switch {
		case p.name == "parley-headers":
			flags = nil
		case t.Limited:
			flags = []string{"--rpm", "3000"}
		}
		took, err = b.ask(in, calls, t.URL, flags...)
	}
	return peerResult{Seconds: took.wall, CPU: took.cpu * float64(calls) / 1e6, peak: took.peak}, err
}

// goPeer is the plain loop of the other parts.
func (b *bench) goPeer(_ peer, t peerTask) (peerResult, error) {
	r, err := b.client(plan{Client: "plain", Dialect: "openai", URL: t.URL + "/v1", Calls: t.Conversations, Concurrency: t.Width, Turns: t.Turns, Bytes: len(t.Prompt), MaxTokens: 64, Retries: 10})
	if err != nil {
		return peerResult{}, err
	}
	return peerResult{Seconds: r.Walls[0], CPU: r.CPU, peak: r.PeakMB, Failed: r.Failed, Error: r.Error}, nil
}

// pythonPeer runs a program of peers/peers.py in a virtual environment.
func (b *bench) pythonPeer(p peer, t peerTask) (peerResult, error) {
	python, err := installed(p.name)
	if err != nil {
		return peerResult{}, err
	}
	if !t.Rollouts {
		t.URL += "/v1"
	}
	arg, err := json.Marshal(t)
	if err != nil {
		return peerResult{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), peerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "bench/peers/peers.py", p.name, string(arg))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	r := peerResult{late: ctx.Err() != nil, peak: peakOf(cmd)}
	if r.late {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
	}
	return r, json.Unmarshal(stdout.Bytes(), &r)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// installed returns the Python of a virtual environment that has a program at its version of requirements.txt. The
// environment is kept for the next time. Each program is installed by itself, so that one can fail alone.
func installed(name string) (python string, err error) {
	dir := filepath.Join(os.TempDir(), "parley-peers")
	python = filepath.Join(dir, "bin", "python")
	text, err := os.ReadFile("bench/peers/requirements.txt")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.HasPrefix(l, name+"==") })
	if i < 0 {
		return "", fmt.Errorf("requirements.txt has no %s", name)
	}
	want := strings.Split(string(text), "\n")[i]
	mark := filepath.Join(dir, want)
	if _, err := os.Stat(mark); err == nil {
		return python, nil
	}
	if _, err := os.Stat(python); err != nil {
		if out, err := exec.Command("python3", "-m", "venv", dir).CombinedOutput(); err != nil {
			return "", fmt.Errorf("no virtual environment: %w: %s", err, lastLine(string(out)))
		}
	}
	install := exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", want)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("not installed: %w: %s", err, lastLine(string(out)))
	}
	return python, os.WriteFile(mark, nil, 0o600)
}
