// Command bench measures the figures of the README: how much of a provider's limit is used and how many calls
// are refused, ten thousand calls in flight, the cost of a call compared with the vendors' SDKs, dispatch
// itself, the overhead of a gateway, and rollouts compared with a plain loop.
//
// It builds parley, starts `parley sim` as the server, and runs every client in a separate process, so that
// memory and CPU are those of the client. Everything runs on the loopback interface; figures that are compared
// are measured together.
//
//	go -C test/oracle run ./bench          all of it, a few minutes
//	go -C test/oracle run ./bench limits   or: flight, cpu, dispatch, gateway, one, rollouts, programs
//
// Seven more are run only by name. All but soak and evolution write their tables into docs/reference/benchmarks.md.
//
//	go -C test/oracle run ./bench tasks [NAME...]         the tasks that we want to be fast, each beside a plain loop
//	go -C test/oracle run ./bench peers [--small] [NAME...]  the same tasks with other programs
//	go -C test/oracle run ./bench view [--dir DIR]        parley view: a million episodes, and beside a run
//	go -C test/oracle run ./bench cluster [NAME...]       a run that several processes play
//	go -C test/oracle run ./bench weights                 what each module adds to the first build and to the program
//	go -C test/oracle run ./bench evolution               generations beside children that wait for nobody, in simulated time
//	go -C test/oracle run ./bench soak [--for DURATION]   a long run with faults and kills
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	parts := map[string]func(string) error{"client": client, "upstream": upstreamMain, "proxy": proxyMain, "proxy2": proxy2Main, "unrecorded": unrecordedMain, "environments": environmentsMain, "plain-rollouts": plainRollouts, "plain-programs": plainPrograms}
	if len(os.Args) > 2 && parts[os.Args[1]] != nil {
		if err := parts[os.Args[1]](os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "evolution" { // it needs no program
		return evolution(os.Stdout, args[1:])
	}
	dir, err := os.MkdirTemp("", "parley-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, parley: filepath.Join(dir, "parley"), out: os.Stdout}
	build := exec.Command("go", "build", "-o", b.parley, "./cmd/parley")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	more := map[string]func(*bench, []string) error{"tasks": tasks, "peers": peers, "soak": soak, "view": view, "cluster": clusters, "weights": weights}
	if len(args) > 0 && more[args[0]] != nil {
		return more[args[0]](b, args[1:])
	}
	return b.parts(args)
}

// parts runs the parts that are named, or all.
func (b *bench) parts(names []string) error {
	type part struct {
		name string
		run  func(*bench) error
	}
	parts := []part{{"limits", limits}, {"flight", flight}, {"cpu", cpu}, {"dispatch", dispatchOnly}, {"gateway", gateway}, {"one", one}, {"rollouts", rollouts}, {"programs", programs}}
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("unknown part %q; want limits, flight, cpu, dispatch, gateway, one, rollouts, programs, tasks, peers, soak, view, cluster, weights or evolution", name)
		}
	}
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if err := p.run(b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// bench is what the parts share.
type bench struct {
	dir    string // removed at the end
	parley string // the binary
	out    io.Writer
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// plan is what one client process does.
type plan struct {
	Client      string        `json:"client"` // parley, plain, openai-sdk, anthropic-sdk, instant
	Dialect     string        `json:"dialect"`
	URL         string        `json:"url"`
	HTTP2       bool          `json:"http2"`
	Calls       int           `json:"calls"`
	Concurrency int           `json:"concurrency"` // 0: found by the client
	Turns       int           `json:"turns"`       // 0: each of Calls is one; else a conversation of so many
	Bytes       int           `json:"bytes"`       // of the prompt
	MaxTokens   int           `json:"max_tokens"`
	Retries     int           `json:"retries"` // of a call that is refused: of the plain loop
	RPM         float64       `json:"rpm"`
	TPM         float64       `json:"tpm"`
	ITPM        float64       `json:"itpm"`
	OTPM        float64       `json:"otpm"`
	Rounds      int           `json:"rounds"` // the calls again, on warm connections
	Skip        time.Duration `json:"skip"`   // of the start, for the steady state
}

// result is the output of a client process.
type result struct {
	OK          int       `json:"ok"`
	Failed      int       `json:"failed"`
	RateLimited int64     `json:"rate_limited"`
	Error       string    `json:"error,omitempty"`
	Walls       []float64 `json:"walls"`    // seconds of each round
	CPU         float64   `json:"cpu"`      // seconds, user and system, all rounds
	PeakMB      float64   `json:"peak_mb"`  // resident
	Requests    float64   `json:"requests"` // a second, in the steady state
	Charged     float64   `json:"charged"`  // tokens a second as the server counts them, in the steady state
	Input       float64   `json:"input"`    // tokens a second, in the steady state
	Output      float64   `json:"output"`   // the same
}

// client runs p in a separate process.
func (b *bench) client(p plan) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	arg, err := json.Marshal(p)
	if err != nil {
		return result{}, err
	}
	cmd := exec.Command(self, "client", string(arg))
	cmd.Env = append(os.Environ(), "BENCH_KEY=bench")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%s: %w: %s", p.Client, err, stderr.String())
	}
	var r result
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	if r.Failed > 0 {
		b.printf("  note: %s: %d of %d calls failed, the first: %s\n", p.Client, r.Failed, r.OK+r.Failed, r.Error)
	}
	return r, nil
}
