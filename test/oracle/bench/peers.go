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

// peers measures other programs on the same tasks and writes the table into the page.
func peers(b *bench, names []string) error {
	all := allPeers()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p peer) bool { return p.name == name }) {
			return fmt.Errorf("unknown program %q; want parley, parley-headers, go, aiohttp, openai, inspect_ai or litellm", name)
		}
	}
	about := fmt.Sprintf("Measured on %s with %s and %s on %d cores.", time.Now().Format(time.DateOnly), pythonVersion(), strings.Replace(runtime.Version(), "go", "Go ", 1), runtime.NumCPU())
	for _, p := range all {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		row := p.row(b)
		b.printf("%s\n", row)
		if err := updateTable("peers", about, []string{row}); err != nil {
			return err
		}
	}
	return nil
}

func pythonVersion() string {
	out, err := exec.Command("python3", "--version").Output()
	if err != nil {
		return "no Python"
	}
	return strings.TrimSpace(string(out))
}

// row measures every cell of a program. A task that it cannot do is a cell that says so.
func (p peer) row(b *bench) string {
	prompt := strings.Repeat("word ", 80)
	version := ""
	cell := func(t peerTask, show func(peerResult) string, flags ...string) string {
		t.Prompt = prompt
		r, err := p.cell(b, t, flags...)
		switch {
		case err != nil:
			return "failed: " + strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%.120s", err.Error()), "\n", " "), "|", "/")
		case r.late:
			return fmt.Sprintf("not done in %.0f s: %s of %s calls, %.0f MB", peerLimit.Seconds(), figure(float64(r.OK)), figure(float64(t.Conversations*t.Turns)), r.peak)
		}
		version = r.Version
		text := show(r)
		if r.Failed > 0 {
			text += fmt.Sprintf("; %d failed", r.Failed)
		}
		return text
	}
	talk := func(r peerResult) string { return fmt.Sprintf("%.1f s, %.0f MB", r.Seconds, r.peak) }
	calls, cpu, few, many := "", "", "", ""
	if p.calls > 0 {
		calls = cell(peerTask{Conversations: p.calls, Turns: 1, Width: width}, func(r peerResult) string {
			cpu = fmt.Sprintf("%.2f ms", r.CPU/float64(p.calls)*1000)
			return figure(float64(p.calls) / r.Seconds)
		})
		few = cell(peerTask{Conversations: 1000, Turns: 5, Width: 1000}, talk, "--latency", "1s")
		many = cell(peerTask{Conversations: 10_000, Turns: 5, Width: 10_000}, talk, "--latency", "1s")
	}
	limit := cell(peerTask{Conversations: 1500, Turns: 1, Width: width}, func(r peerResult) string {
		return fmt.Sprintf("%.2f, %.1f%%", float64(r.OK)/r.Seconds/50, 100*float64(r.RateLimited)/float64(r.Requests))
	}, "--latency", "500ms", "--rpm", "3000", "--burst", "1s")
	title := map[string]string{
		"parley": "Parley: `ask`, `run`; limit set", "parley-headers": "Parley: `ask`, limit learned", "go": "a plain Go loop, net/http", "aiohttp": "aiohttp, a plain loop",
		"openai": "openai SDK", "inspect_ai": "inspect_ai", "litellm": "litellm",
	}[p.name]
	return tableRow(strings.TrimSpace(title+" "+version), calls, cpu, few, many, limit, "`go -C test/oracle run ./bench peers "+p.name+"`")
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
		case t.Conversations < p.calls: // the task with a limit
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
	install := exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", want)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("not installed: %w: %s", err, lastLine(string(out)))
	}
	return python, os.WriteFile(mark, nil, 0o600)
}
