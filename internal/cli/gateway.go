package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/cache"
	"parley/internal/ask/settings"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/auth"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/internal/serve/gateway"
	"parley/internal/serve/gateway/format"
	"parley/internal/serve/telemetry"
)

// gatewayCmd serves the vendors' APIs to other programs, and records their calls.
type gatewayCmd struct {
	Plan   string `arg:"" optional:"" placeholder:"PLAN" help:"A plan file. Its providers become upstreams, its agents become model names, and its budget, prices and cache apply."`
	Addr   string `default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`
	Out    string `placeholder:"FILE" help:"The run file to record calls in. If it exists, calls are added to it."`
	Replay string `placeholder:"FILE" help:"Answer from this run file only, without asking any model."`
	Resume bool   `help:"Answer from the run file first, then ask: a program that is run again asks nothing twice."`

	Ignore  []string `sep:"none" placeholder:"RULE" help:"With --replay or --resume: what may differ between a call and the record: re:REGEXP (text that matches), path:$.NAME[*].NAME (a member of the request), whitespace, order (of messages). Repeatable."`
	Nearest float64  `placeholder:"SHARE" help:"With --replay: if no recorded call is the same, serve the most similar one of the session that shares at least this fraction of words (0 to 1, such as 0.6), and log where it differs."`

	upstreamFlags
	trustFlags
	reachFlags

	MaxSteps int               `group:"sessions" placeholder:"N" help:"Maximum number of answers of one model in a session; after that, calls are answered with a stop. Default: no limit."`
	Until    map[string]string `group:"sessions" mapsep:"," placeholder:"score=NAME,width=NUMBER" help:"Begin no more sessions of an agent, under a condition and with tags, once the interval of this score is at most ± this width. Also confidence, min, max and step, as in plan.until."`
	Idle     time.Duration     `group:"sessions" placeholder:"DURATION" help:"Close a session after this time without a call. Default: never."`

	Budget      *float64       `group:"care" placeholder:"USD" help:"Maximum cost of all calls in the run file."`
	MaxOutput   int            `group:"care" name:"max-output-tokens" placeholder:"N" help:"Ask for at most this many tokens for an answer, whatever the client asks for. A budget then sets aside less for a call. Default: max_tokens of the plan's agent, or no limit."`
	Prices      string         `group:"care" placeholder:"FILE" help:"${prices}"`
	Cache       string         `group:"care" placeholder:"DIR" help:"${cache}"`
	Retries     int            `group:"care" default:"${retry_retries_gateway}" placeholder:"N" help:"${retry_retries} Once an answer has begun, its call is not retried. Default: ${default}."`
	Deadline    time.Duration  `group:"care" default:"10m" placeholder:"DURATION" help:"Maximum time until an answer starts, including waiting and retries. Default: ${default}."`
	Unreachable *time.Duration `group:"care" placeholder:"DURATION" help:"${retry_unreachable} Default: the plan's, or ${retry_unreachable_gateway}."`
	Grace       time.Duration  `group:"care" default:"30s" placeholder:"DURATION" help:"How long calls in flight may take after a signal to stop. Default: ${default}."`

	auth.Flags
	ClientKeyEnv  string        `group:"clients" placeholder:"NAME" help:"Environment variable with the keys that clients may use, separated by commas. Default: clients need no key."`
	ClientTimeout time.Duration `group:"clients" name:"client-timeout" default:"1m" placeholder:"DURATION" help:"Maximum time for a client to send a request, or to read a part of an answer. Default: ${default}."`
	MaxBody       int64         `group:"clients" default:"33554432" placeholder:"BYTES" help:"Maximum size of a request. Default: 32 MiB."`
}

// Run serves until the first signal. The second ends it at once.
func (c *gatewayCmd) Run(ctx context.Context, s *State) (err error) {
	cfg, err := c.config(ctx, s)
	if err != nil {
		return exit.AsUsage(err)
	}
	g := exit.NewGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	drain, stop := context.WithCancel(ctx)
	defer stop()
	g.OnClose(stop)
	ln, err := c.Listen(ctx, c.Addr, "--client-key-env", len(cfg.Keys) > 0)
	if err != nil {
		return exit.AsUsage(err)
	}
	done, err := c.open(ctx, s, &cfg)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, done()) }()
	gw, err := gateway.Open(ctx, cfg)
	if err != nil {
		return errors.Join(exit.AsUsage(err), ln.Close())
	}
	if _, err := fmt.Fprintf(s.Stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = ln.Close() // nobody can know the address, so Run ends
	}
	err = gw.Run(ctx, drain, ln)
	c.report(s, gw.Summary())
	return err
}

// config returns the configuration that the flags and the plan give.
func (c *gatewayCmd) config(ctx context.Context, s *State) (gateway.Config, error) {
	tell := s.onEvent(true)
	cfg := gateway.Config{
		Replay: c.Replay != "", Resume: c.Resume, MaxSteps: c.MaxSteps, Idle: c.Idle, MaxOutput: c.MaxOutput,
		Deadline: c.Deadline, Grace: c.Grace, ClientTimeout: c.ClientTimeout, MaxBody: c.MaxBody,
		Nearest: c.Nearest, Settings: settings.New(settings.Gateway),
		Events: func(e gateway.Event) {
			if tell(e.Event); e.Text != "" {
				s.tell(e.Text)
			}
		},
	}
	var err error
	if c.Until != nil {
		if cfg.Until, err = planfile.FlagUntil(c.Until); err != nil {
			return cfg, err
		}
	}
	if cfg.Replay || cfg.Resume {
		if cfg.Rules, err = format.ParseRules(c.Ignore); err != nil {
			return cfg, fmt.Errorf("--ignore: %w", err)
		}
	}
	if err := c.checkFlags(); err != nil {
		return cfg, err
	}
	if cfg.Keys, err = auth.KeysFrom(s.Env, "--client-key-env", c.ClientKeyEnv); err != nil {
		return cfg, err
	}
	if cfg.Access, err = c.Access(c.Addr, "--client-key-env", len(cfg.Keys) > 0); err != nil {
		return cfg, err
	}
	if cfg.Replay {
		return cfg, nil
	}
	return cfg, c.upstreams(ctx, s, c.Plan, &cfg)
}

// checkFlags checks the flags that say what is recorded and what is served.
func (c *gatewayCmd) checkFlags() error {
	switch {
	case c.Replay != "" && (c.Out != "" || c.Resume || len(c.Upstream) > 0 || len(c.Until) > 0 || c.Plan != ""):
		return errors.New("--replay serves a run file and calls no provider; leave out --out, --resume, --upstream, --until and the plan")
	case c.Replay == "" && c.Out == "":
		return errors.New("give --out FILE to record calls, or --replay FILE to serve recorded ones")
	case len(c.Ignore) > 0 && c.Replay == "" && !c.Resume:
		return errors.New("--ignore is for comparing calls with a record; use it with --replay or --resume")
	case c.Nearest != 0 && c.Replay == "":
		return errors.New("--nearest works only with --replay, since a guess must not be recorded as an answer; with --resume use --ignore")
	case math.IsNaN(c.Nearest) || c.Nearest < 0 || c.Nearest > 1:
		return fmt.Errorf("--nearest %v: want a share from 0 to 1, such as 0.6", c.Nearest)
	case c.Retries < 0 || c.Unreachable != nil && *c.Unreachable < 0:
		return errors.New("--retries and --unreachable must not be negative")
	case c.ClientTimeout <= 0:
		return fmt.Errorf("--client-timeout %s: want a time above 0, such as 1m", c.ClientTimeout)
	case c.MaxOutput < 0:
		return errors.New("--max-output-tokens must not be negative")
	case c.MaxSteps < 0 || c.Idle < 0 || c.Deadline < 0 || c.Grace < 0 || c.MaxBody < 0:
		return errors.New("--max-steps, --idle, --deadline, --grace and --max-body must not be negative")
	default:
		return nil
	}
}

// open opens the run file, the cache, and what sends telemetry.
func (c *gatewayCmd) open(ctx context.Context, s *State, cfg *gateway.Config) (done func() error, err error) {
	var store *runfile.Store
	file := c.Out
	if cfg.Replay {
		file = c.Replay
		store, err = runfile.OpenRead(file)
	} else {
		store, err = runfile.Open(ctx, file, runfile.Either)
	}
	if err != nil {
		return nil, exit.AsUsage(playError(file, err))
	}
	cfg.Journal = store
	cfg.Begin = gateway.Begin{Run: strconv.FormatInt(time.Now().UnixNano(), 36), Tool: Version(), Now: time.Now(), Plan: c.plan(cfg)}
	var answers *cache.Store
	if dir := cfg.Settings.Cache; dir != "" {
		if answers, err = cache.Open(dir); err != nil {
			return nil, errors.Join(exit.AsUsage(err), store.Close())
		}
		cfg.Cache = answers
	}
	closeAll := func() error {
		if answers != nil {
			answers.Close()
		}
		return store.Close()
	}
	if cfg.Telemetry, err = telemetry.Open(ctx, s.Env, "parley-gateway", Version(), s.tellError); err != nil {
		return nil, errors.Join(exit.AsUsage(err), closeAll())
	}
	return func() error {
		closeTelemetry(ctx, s, cfg.Telemetry)
		return closeAll()
	}, nil
}

// refuseGateway refuses the record of a gateway, which no plan can resume, and says what to do with it. Other
// files are checked elsewhere.
func refuseGateway(ctx context.Context, file string) error {
	store, about, err := openRun(ctx, file)
	if err != nil {
		return nil
	}
	if about.Begun.Kind == gateway.KindName {
		word := terminal.ShellWord(file)
		err = exit.Usagef("%s is the record of a gateway: parley gateway --out %s continues it, parley gateway --replay %s serves it again, and parley show %s shows it", file, word, word, word)
	}
	return errors.Join(err, store.Close())
}

// plan returns the gateway's settings, for the record.
func (c *gatewayCmd) plan(cfg *gateway.Config) []byte {
	b, err := terminal.Marshal(map[string]any{
		"upstreams": cfg.Upstreams, "aliases": cfg.Aliases, "fallbacks": cfg.Fallbacks, "budget": cfg.Settings.Budget,
		"max_output_tokens": cfg.MaxOutput, "alias_max_output_tokens": cfg.AliasOutput, "max_steps": cfg.MaxSteps, "idle": cfg.Idle.String(), "deadline": cfg.Deadline.String(),
	})
	if err != nil {
		return nil // cannot happen: all of it is plain data
	}
	return b
}

// foundText says how many calls were in the record.
func foundText(sum gateway.Summary) string {
	text := fmt.Sprintf("%s of %s found in the record", terminal.Number(sum.Replayed), terminal.Several(sum.Replayed+sum.Missed, "call", "calls"))
	var how []string
	if sum.Loose > 0 {
		how = append(how, terminal.Number(sum.Loose)+" that differ as the rules allow")
	}
	if sum.Nearest > 0 {
		how = append(how, terminal.Number(sum.Nearest)+" by --nearest")
	}
	if len(how) > 0 {
		text += " (" + strings.Join(how, ", ") + ")"
	}
	return text
}

// diverged returns how many of the refused calls were not in the record.
func (c *gatewayCmd) diverged(sum gateway.Summary) int {
	if c.Replay == "" {
		return 0
	}
	return sum.Missed
}

// report prints the summary to standard error.
func (c *gatewayCmd) report(s *State, sum gateway.Summary) {
	var parts []string
	if c.Replay == "" {
		parts = append(parts, fmt.Sprintf("%s recorded in %s, %s failed", strings.Join(countedTexts(sum.Recorded), ", "), c.Out, terminal.Number(sum.Recorded.Failures())))
	}
	if c.Replay != "" || c.Resume {
		parts = append(parts, foundText(sum))
	}
	if refused := sum.Refused - c.diverged(sum); refused > 0 {
		parts = append(parts, terminal.Number(refused)+" refused")
	}
	parts = append(parts, terminal.Several(sum.Sessions, "session", "sessions"))
	if c.Replay == "" {
		parts = append(parts, sum.Money.Text())
	}
	fmt.Fprintln(s.Stderr, strings.Join(parts, "; "))
}
