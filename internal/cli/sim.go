package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/auth"
)

// simCmd serves the simulated provider over HTTP.
type simCmd struct {
	Addr  string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`
	Grace time.Duration `default:"5s" placeholder:"DURATION" help:"How long requests in flight may take after a signal to stop. Default: ${default}."`
	JSON  bool          `name:"json" help:"Print the final counts as JSON."`

	auth.Flags
	KeyEnv        string        `group:"clients" placeholder:"NAME" help:"Environment variable with the key that clients must send. Default: clients need no key."`
	ClientTimeout time.Duration `group:"clients" name:"client-timeout" default:"1m" placeholder:"DURATION" help:"Maximum time for a client to send a request. Default: ${default}."`

	Seed        uint64 `group:"answers" placeholder:"N" help:"Seed of the answers: another seed gives other answers to the same questions."`
	MinTokens   int    `group:"answers" placeholder:"N" help:"Minimum number of tokens in a plain answer. Default: 8."`
	MaxTokens   int    `group:"answers" placeholder:"N" help:"Maximum number of tokens in a plain answer. Default: 96."`
	ChunkTokens int    `group:"answers" placeholder:"N" help:"Tokens in each event of a stream. Default: 4."`
	ChatOnly    bool   `group:"answers" name:"chat-only" help:"Serve chat completions and no other format, as many local servers do."`

	Latency string `group:"times" placeholder:"DELAY" help:"How long an answer takes: 1s, 200ms..2s or lognormal:800ms,0.6. A stream begins after a third of it. Default: 0s."`

	RPM         float64       `group:"limits" name:"rpm" placeholder:"N" help:"Requests per minute."`
	TPM         float64       `group:"limits" name:"tpm" placeholder:"N" help:"Tokens per minute, in OpenAI's format."`
	ITPM        float64       `group:"limits" name:"itpm" placeholder:"N" help:"Input tokens per minute, in Anthropic's format."`
	OTPM        float64       `group:"limits" name:"otpm" placeholder:"N" help:"Output tokens per minute, in Anthropic's format."`
	Burst       time.Duration `group:"limits" placeholder:"DURATION" help:"How much unused quota can accumulate, as a time. Default: 1m."`
	Concurrency int           `group:"limits" placeholder:"N" help:"Maximum number of requests in flight."`
	NoHeaders   bool          `group:"limits" name:"no-limit-headers" help:"Send no headers about limits, as many servers do."`

	Faults   string        `group:"faults" placeholder:"NAME=SHARE,..." help:"Faults to inject, and how often: ${faults}."`
	StallFor time.Duration `group:"faults" placeholder:"DURATION" help:"How long a stalled answer hangs. Default: 10m."`

	BatchLatency     string `group:"batches" placeholder:"DELAY" help:"How long a batch takes. Default: 2s."`
	BatchMaxRequests int    `group:"batches" placeholder:"N" help:"Maximum number of requests in a batch. Default: the vendors' limits."`
}

// Run serves until the first signal.
func (c *simCmd) Run(ctx context.Context, s *State) error {
	cfg, err := c.config()
	if err != nil {
		return exit.AsUsage(err)
	}
	cfg.Sim.StandIns = sim.StandIns(s.Kinds...)
	server, err := simhttp.New(cfg)
	if err != nil {
		return exit.AsUsage(err)
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	ln, err := c.Listen(ctx, c.Addr, "--key-env", c.KeyEnv != "")
	if err != nil {
		return exit.AsUsage(err)
	}
	if _, err := fmt.Fprintf(s.Stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = ln.Close() // nobody can know the address
		return fmt.Errorf("standard output: %w", err)
	}
	err = server.Run(ctx, ln)
	c.report(s, server.Stats())
	return err
}

// config returns the configuration that the flags give.
func (c *simCmd) config() (simhttp.Config, error) {
	cfg := simhttp.Config{
		Sim: sim.Config{
			Seed: c.Seed, MinTokens: c.MinTokens, MaxTokens: c.MaxTokens,
			Limits: sim.Limits{
				RPM: c.RPM, TPM: c.TPM, ITPM: c.ITPM, OTPM: c.OTPM,
				Burst: c.Burst, Concurrency: c.Concurrency,
			},
			StallFor: c.StallFor,
		},
		KeyEnv: c.KeyEnv, ChunkTokens: c.ChunkTokens, ChatOnly: c.ChatOnly, NoLimitHeaders: c.NoHeaders, Grace: c.Grace, Patience: c.ClientTimeout,
		Batch: simhttp.BatchConfig{MaxRequests: c.BatchMaxRequests},
	}
	for _, d := range []struct {
		flag, text string
		to         *sim.Delay
	}{
		{"--latency", c.Latency, &cfg.Sim.Latency},
		{"--batch-latency", c.BatchLatency, &cfg.Batch.Latency},
	} {
		var err error
		if *d.to, err = sim.ParseDelay(d.text); err != nil {
			return cfg, fmt.Errorf("%s: %w", d.flag, err)
		}
	}
	var err error
	if c.ClientTimeout <= 0 {
		return cfg, fmt.Errorf("--client-timeout %s: want a time above 0, such as 1m", c.ClientTimeout)
	}
	if cfg.Access, err = c.Access(c.Addr, "--key-env", c.KeyEnv != ""); err != nil {
		return cfg, err
	}
	if cfg.Sim.Faults, err = sim.ParseFaults(c.Faults); err != nil {
		return cfg, fmt.Errorf("--faults: %w", err)
	}
	return cfg, nil
}

// report prints the summary to standard error.
func (c *simCmd) report(s *State, n simhttp.Stats) {
	if c.JSON {
		_ = terminal.PrintJSON(s.Stderr, n) // as for every message on standard error
		return
	}
	fmt.Fprintf(s.Stderr, "%s requests, %s answered, %s rate-limited, at most %s in flight; %s tokens in, %s out%s%s\n",
		terminal.Number(int(n.Requests)), terminal.Number(int(n.OK)), terminal.Number(int(n.RateLimited)), terminal.Number(int(n.InFlightMax)),
		terminal.Number(int(n.Tokens.Input)), terminal.Number(int(n.Tokens.Output)), listed("; errors", n.Errors), listed("; faults", n.Faults))
}

// listed formats counts by name, and nothing if counts is empty.
func listed(title string, counts map[string]int64) string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		items = append(items, name+": "+terminal.Number(int(counts[name])))
	}
	if len(items) == 0 {
		return ""
	}
	return title + " " + strings.Join(items, ", ")
}

// faultNames returns the names of the faults for the help text.
func faultNames() string {
	var names []string
	for _, f := range sim.AllFaults() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}
