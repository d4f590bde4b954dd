package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/answer"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/settings"
	"parley/internal/ask/sim"
	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/run/planfile"
	"parley/llm"
)

// askCmd asks a model one question, or every question of a JSONL file.
type askCmd struct {
	Words []string `arg:"" optional:"" name:"prompt" placeholder:"PROMPT or FILE" help:"The prompt; - to read it from standard input; or a .jsonl file of requests."`
	JSONL bool     `name:"jsonl" help:"Read the argument (or -) as a file of requests, whatever its name."`

	Model       *string  `group:"question" placeholder:"PROVIDER/MODEL" help:"The model to ask. Default: sim/small, which is simulated and needs no key."`
	System      string   `group:"question" placeholder:"TEXT" help:"System prompt."`
	Temperature *float64 `group:"question" placeholder:"T" help:"Temperature."`
	MaxTokens   int      `group:"question" placeholder:"N" help:"Maximum number of tokens in an answer."`
	Attach      []string `group:"question" sep:"none" placeholder:"FILE" help:"Send this file with the prompt: a PDF, a picture, or audio (wav, mp3). Repeatable."`
	Schema      string   `group:"question" placeholder:"FILE" help:"JSON Schema that the answer must follow."`
	Effort      string   `group:"question" placeholder:"LEVEL" help:"Reasoning effort: none, minimal, low, medium, high, xhigh or max."`
	Tier        string   `group:"question" placeholder:"NAME" help:"Service tier, by the provider's own name, such as flex or priority."`
	Seed        *int64   `group:"question" placeholder:"N" help:"Seed. Sample k gets seed N+k."`
	Samples     int      `group:"question" default:"1" placeholder:"N" help:"Ask every question N times."`

	providerFlags `group:"provider"`

	Budget      *float64      `group:"care" placeholder:"USD" help:"Stop before the cost exceeds this. With --out, what the records in the file and in FILE.stale cost counts too."`
	Prices      string        `group:"care" placeholder:"FILE" help:"${prices}"`
	Cache       string        `group:"care" placeholder:"DIR" help:"${cache} Default: $PARLEY_CACHE, or no cache."`
	NoCache     bool          `group:"care" help:"Use no cache, even if $PARLEY_CACHE is set."`
	Retries     int           `group:"care" default:"${retry_retries_ask}" placeholder:"N" help:"${retry_retries} Default: ${default}."`
	Deadline    time.Duration `group:"care" placeholder:"DURATION" help:"Maximum time for a request, including waiting and retries."`
	Unreachable time.Duration `group:"care" default:"${retry_unreachable_ask}" placeholder:"DURATION" help:"${retry_unreachable} Default: ${default}."`
	Fallback    []string      `group:"care" placeholder:"PROVIDER/MODEL" help:"Models to ask in this order if the first cannot answer."`

	Out     string `group:"output" placeholder:"FILE" help:"Write the records to this file. Run the command again to ask only what is missing. Default: standard output."`
	JSON    bool   `group:"output" name:"json" help:"Print JSON: the record of a prompt, or the summary of a file. The summary goes to standard error if the records go to standard output."`
	Digests bool   `group:"output" help:"Ask nothing. Print the id and the digest of each request, and its sample, as its record has them."`
	Quiet   bool   `group:"output" short:"q" help:"Print no progress and no summary."`

	metricsFlags `group:"output"`

	model string // the one of --model, or the default
}

// Run asks the prompt, or the requests of the file.
func (c *askCmd) Run(ctx context.Context, s *State) error {
	if err := c.checkWords(); err != nil {
		return err
	}
	if c.model = "sim/small"; c.Model != nil {
		c.model = *c.Model
	}
	defs, err := c.defaults(ctx)
	if err != nil {
		return err
	}
	cfg, err := c.settings(s)
	if err != nil {
		return err
	}
	g := exit.NewGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	if path, ok := c.file(); ok {
		if len(c.Attach) > 0 {
			return exit.Usagef("--attach is for a prompt: in a file of requests, a line has its own \"files\"")
		}
		if c.Digests {
			return c.listDigests(ctx, s, g, defs, path)
		}
		return c.askFile(ctx, s, g, cfg, defs, path)
	}
	if c.Digests {
		return exit.Usagef("--digests is for a file of requests")
	}
	return c.askPrompt(ctx, s, g, cfg, defs)
}

// file returns the path of the file of requests. ok is false if the argument is a prompt.
func (c *askCmd) file() (path string, ok bool) {
	switch {
	case c.JSONL && len(c.Words) == 0:
		return "-", true
	case len(c.Words) != 1:
		return "", false
	case c.JSONL:
		return c.Words[0], true
	default:
		return c.Words[0], isJSONL(c.Words[0])
	}
}

// defaults returns the values of the flags for requests that do not set them.
func (c *askCmd) defaults(ctx context.Context) (bulk.Defaults, error) {
	d := bulk.Defaults{System: c.System, Schemas: &answer.Compiler{}, Req: llm.Request{
		Model: c.model, Temperature: c.Temperature, MaxTokens: c.MaxTokens,
		Effort: llm.Effort(c.Effort), Tier: c.Tier, Seed: c.Seed,
		Deadline: c.Deadline, Fallbacks: c.Fallback,
	}}
	if c.Schema != "" {
		b, err := files.Read(ctx, c.Schema, llm.MaxSchemaBytes)
		if err != nil {
			return d, exit.Usagef("--schema: %w", err)
		}
		if d.Req.Schema, err = bulk.ParseSchema(b, d.Schemas); err != nil {
			return d, exit.Usagef("--schema: %s: %w", c.Schema, err)
		}
	}
	if err := bulk.CheckRequest(&d.Req); err != nil {
		return d, exit.AsUsage(err)
	}
	return d, nil
}

// settings returns how requests are served, as the flags say.
func (c *askCmd) settings(s *State) (app.Config, error) {
	switch {
	case c.Samples < 1:
		return app.Config{}, exit.Usagef("--samples must be 1 or more")
	case c.Retries < 0 || c.Deadline < 0 || c.Unreachable < 0:
		return app.Config{}, exit.Usagef("--retries, --deadline and --unreachable must not be negative")
	}
	set := settings.New(settings.Ask)
	set.Prices, set.Retry.Retries, set.Retry.Unreachable = c.Prices, c.Retries, c.Unreachable
	var err error
	if set.Budget, err = budgetOf(c.Budget); err != nil {
		return app.Config{}, err
	}
	if c.Digests {
		return app.Config{}, nil // nothing is asked: no key is needed
	}
	if cache, _ := s.Env("PARLEY_CACHE"); !c.NoCache {
		set.Cache = cmp.Or(c.Cache, cache)
	}
	providers, err := c.providers(c.model, c.Fallback, s.Env)
	keys := &trust.Gate{Env: s.Env}
	for _, p := range providers {
		keys.Give(trust.Keys(p)...) // the user typed all of it
	}
	return app.Config{
		Sim:       sim.Config{StandIns: sim.StandIns(s.Kinds...)},
		Trust:     keys,
		Providers: providers,
		Config:    dispatch.Config{Events: s.onEvent(!c.Quiet), Settings: set},
	}, err
}

// askPrompt asks the prompt of the command line and prints the answer.
func (c *askCmd) askPrompt(ctx context.Context, s *State, g *exit.Gate, cfg app.Config, defs bulk.Defaults) error {
	if c.Out != "" {
		return exit.Usagef("--out is for a file of requests; a prompt's answer goes to standard output")
	}
	w, err := c.openMonitor(ctx, s)
	if err != nil {
		return err
	}
	defer w.close(ctx, s)
	prompt, err := c.prompt(s, g)
	if err != nil {
		return err
	}
	a, err := s.open(cfg)
	if err != nil {
		return err
	}
	req := defs.Req
	text := bulk.RequestLine{Prompt: &prompt, Files: c.Attach}
	if err := text.PutMessages(&req, defs.System, bulk.OpenAny(ctx)); err != nil {
		return exit.AsUsage(err)
	}
	sink := bulk.NewOrdered(s.Stdout, bulk.Window)
	if !c.JSON {
		sink.Format = func(r *bulk.Record) ([]byte, error) { return answerText(s, r), nil }
	}
	m := &bulk.Asking{
		Source: &oneQuestion{question: bulk.Question{ID: []byte("1"), Req: &req, Line: 1, Unnamed: true}}, Sink: sink,
		Samples: c.Samples, Keys: bulk.NewKeyer(), Gate: g, Tally: &bulk.Tally{},
	}
	w.ask(ctx, s, a, m)
	c.tellSimulated(s, m.Tally.Now(), cfg)
	return errors.Join(m.Verdict(), a.Close())
}

// oneQuestion is a source of one question.
type oneQuestion struct {
	question bulk.Question
	over     bool
}

// Next returns the question once, and then io.EOF.
func (s *oneQuestion) Next() (bulk.Question, error) {
	if s.over {
		return bulk.Question{}, io.EOF
	}
	s.over = true
	return s.question, nil
}

// prompt returns the prompt from the command line or from standard input.
func (c *askCmd) prompt(s *State, g *exit.Gate) (string, error) {
	prompt := strings.Join(c.Words, " ")
	if len(c.Words) == 0 && s.Terminal(s.Stdin) > 0 {
		return "", exit.Usagef("no prompt; give a prompt, a .jsonl file, or - to read standard input")
	}
	if len(c.Words) == 0 || prompt == "-" {
		b, err := io.ReadAll(io.LimitReader(exit.NewReader(s.Stdin, g.Shut), bulk.MaxLine+1))
		if errors.Is(err, exit.ErrStopped) {
			return "", exit.Silent(exit.Interrupted)
		}
		if err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		if len(b) > bulk.MaxLine {
			return "", exit.Usagef("standard input: a prompt of more than %d MiB", bulk.MaxLine>>20)
		}
		prompt = strings.TrimRight(string(b), "\r\n")
	}
	if strings.TrimSpace(prompt) == "" {
		return "", exit.Usagef("the prompt is empty")
	}
	return prompt, nil
}

// askFile asks every request of a file.
func (c *askCmd) askFile(ctx context.Context, s *State, g *exit.Gate, cfg app.Config, defs bulk.Defaults, path string) error {
	w, err := c.openMonitor(ctx, s)
	if err != nil {
		return err
	}
	defer w.close(ctx, s)
	defs.Open = bulk.OpenIn(ctx, filepath.Dir(path)) // the working folder, for standard input
	in, err := bulk.OpenJSONL(s.Stdin, path, defs, g.Shut)
	if err != nil {
		return err
	}
	ids := bulk.NewKeyer()
	out, err := c.sink(ctx, s, path, ids, &cfg)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	a, err := s.open(cfg)
	if err != nil {
		if out, ok := out.(io.Closer); ok {
			err = errors.Join(err, out.Close())
		}
		return errors.Join(err, in.Close())
	}
	t := &bulk.Tally{}
	m := &bulk.Asking{Source: in, Sink: out, Samples: c.Samples, Keys: ids, Gate: g, Tally: t, Recorded: a.Budget().Recorded}
	p := &bulk.Progress{Out: s.err, Tally: t, Stats: a.Stats, Share: in.Share, Began: time.Now(), Money: a.Budget().Sums}
	if a, ok := a.(bulk.Waiter); ok {
		p.Waits = a.Waits
	}
	end := func() {}
	if !c.Quiet {
		end = p.Show()
	}
	note := w.ask(ctx, s, a, m)
	end()
	c.report(s, t, a.Stats(), cfg, p.Money(), time.Since(p.Began), note)
	c.tellUnasked(s, g, t.Now().Unasked)
	return errors.Join(m.Verdict(), a.Close(), in.Close())
}

// sink opens the file of --out, or uses standard output. With a budget, what the records of earlier runs cost is spent, and
// what calls in flight can cost is made durable beside the file.
func (c *askCmd) sink(ctx context.Context, s *State, in string, ids bulk.Keyer, cfg *app.Config) (bulk.Sink, error) {
	if c.Out == "" {
		return bulk.NewOrdered(s.Stdout, max(bulk.Window, 2*c.Concurrency)), nil
	}
	if a, err := os.Stat(in); err == nil {
		if b, err := os.Stat(c.Out); err == nil && os.SameFile(a, b) {
			return nil, exit.Usagef("--out names the file of requests; name another file")
		}
	}
	out, err := bulk.OpenOut(ctx, c.Out, ids)
	if err != nil {
		return nil, err
	}
	limit := cfg.Settings.Budget
	if limit == 0 {
		return out, nil
	}
	spent, err := out.Spent()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	cfg.Budget = budget.New(limit, spent)
	cfg.Budget.Expose = out.Expose
	return out, nil
}

// report prints the summary to standard error. With --json and --out, it goes to standard output.
func (c *askCmd) report(s *State, t *bulk.Tally, st dispatch.Snapshot, cfg app.Config, money budget.Sums, took time.Duration, note string) {
	n := t.Now()
	if note != "" {
		fmt.Fprintln(s.Stderr, "parley: "+note)
	}
	sum := bulk.NewSummary(n, st)
	switch {
	case c.JSON:
		out := s.Stderr
		if c.Out != "" {
			out = s.Stdout
		}
		_ = terminal.PrintJSON(out, sum) // a summary that cannot be printed must not fail the run
	case !c.Quiet:
		for _, why := range n.Rejections {
			fmt.Fprintln(s.Stderr, "parley: "+why)
		}
		if more := n.Rejected - len(n.Rejections); more > 0 {
			fmt.Fprintf(s.Stderr, "parley: and %d more: the records have the reasons\n", more)
		}
		if why, times := t.Commonest(); times > 0 {
			fmt.Fprintf(s.Stderr, "parley: failed most often (%s): %s\n", terminal.Number(times), terminal.Safe(why))
		}
		c.tellSimulated(s, n, cfg)
		fmt.Fprintln(s.Stderr, sum.Line(money, took, st))
	}
}

// answerText returns the answer as a person reads it. Failures and refusals go to standard error.
func answerText(s *State, r *bulk.Record) []byte {
	switch resp := r.Response; {
	case r.Error != nil:
		fmt.Fprintln(s.Stderr, "parley: "+r.Error.Error())
		return nil
	case len(resp.JSON) > 0:
		return append(slices.Clone(resp.JSON), '\n')
	case resp.Text == "" && resp.Refusal != "":
		fmt.Fprintln(s.Stderr, "parley: the model refused: "+resp.Refusal)
		return nil
	default:
		if resp.Finish == llm.FinishLength {
			fmt.Fprintln(s.Stderr, "parley: the answer was cut off at its maximum length")
		}
		return []byte(resp.Text + "\n")
	}
}

// budgetOf returns the amount of --budget, which has the range of a plan's budget. Without the flag it is 0: no limit.
func budgetOf(budget *float64) (llm.Money, error) {
	if budget == nil {
		return 0, nil
	}
	if s := planfile.Dollars(); !s.Holds(*budget) {
		return 0, exit.Usagef("--budget %v: want %s; without --budget there is no limit", *budget, s.Describe())
	}
	return llm.Dollars(*budget), nil
}

// checkWords refuses arguments that name files and would be asked as a prompt.
func (c *askCmd) checkWords() error {
	if len(c.Words) > 1 && (c.JSONL || slices.ContainsFunc(c.Words, isJSONL)) {
		return exit.Usagef("ask takes one file of requests; the records go to the file of --out. If it is a prompt, put it in quotes")
	}
	if len(c.Words) != 1 || c.JSONL || isJSONL(c.Words[0]) {
		return nil
	}
	word := c.Words[0]
	if info, err := os.Stat(word); word == "-" || err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it is a prompt
	}
	name := terminal.ShellWord(word)
	return exit.Usagef("%s is a file, and not a prompt: ask the requests in it with --jsonl %s, its text with parley ask - < %s, something about it with --attach %s \"PROMPT\", or the word itself with echo %s | parley ask -",
		terminal.Safe(word), name, name, name, name)
}

// isJSONL reports whether a word names a file of requests.
func isJSONL(word string) bool {
	return strings.HasSuffix(word, ".jsonl") && !strings.ContainsAny(word, " \t\n")
}

// tellSimulated says that answers are simulated, if the user may expect a real model.
func (c *askCmd) tellSimulated(s *State, n bulk.Counts, cfg app.Config) {
	if c.Model == nil && !c.Quiet && n.Unnamed > 0 && len(cfg.Providers) > 0 && cfg.Providers[0].Dialect == "sim" {
		fmt.Fprintf(s.Stderr, "parley: answered by %s, which is simulated; name a model with --model\n", c.model)
	}
}

// tellUnasked says how many requests a stop left, and what to do.
func (c *askCmd) tellUnasked(s *State, g *exit.Gate, n int) {
	if n == 0 || c.Quiet || c.JSON {
		return
	}
	todo := "run the same command again"
	if c.Out == "" {
		todo = "with --out FILE, a stopped command asks only what is missing when you run it again"
	} else if code, _ := g.Reason(); code == exit.Budget {
		todo += " with a larger --budget"
	}
	fmt.Fprintf(s.Stderr, "parley: %s not asked: %s\n", terminal.Number(n), todo)
}

// listDigests prints the record of each request of a file as it is before it is asked: id, sample and digest. Nothing is asked.
func (c *askCmd) listDigests(ctx context.Context, s *State, g *exit.Gate, defs bulk.Defaults, path string) error {
	if c.Out != "" {
		return exit.Usagef("--digests writes nothing to --out; leave one of them out")
	}
	defs.Open = bulk.OpenIn(ctx, filepath.Dir(path))
	in, err := bulk.OpenJSONL(s.Stdin, path, defs, g.Shut)
	if err != nil {
		return err
	}
	m := &bulk.Asking{Source: in, Sink: bulk.NewOrdered(s.Stdout, bulk.Window), Samples: c.Samples, Keys: bulk.NewKeyer(), Gate: g, Tally: &bulk.Tally{}}
	m.Run(ctx, noAsker{})
	code, err := g.Reason()
	if err != nil {
		return errors.Join(&exit.Error{Code: code, Err: err}, in.Close())
	}
	if code == exit.OK && m.Tally.Now().Rejected > 0 {
		code = exit.Failed
	}
	return errors.Join(exit.Silent(code), in.Close())
}

// noAsker is an asker that asks nothing: the record of a request has neither an answer nor an error.
type noAsker struct{}

func (noAsker) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	n := 0
	for range reqs {
		if ctx.Err() != nil {
			break
		}
		done(n, llm.Result{})
		n++
	}
	return n
}

func (noAsker) Drain()                   {}
func (noAsker) Stats() dispatch.Snapshot { return dispatch.Snapshot{} }
func (noAsker) Budget() *budget.Budget   { return budget.New(0, 0) }
func (noAsker) Close() error             { return nil }
