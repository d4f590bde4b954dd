package parley

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley/internal/cli"
	"parley/internal/cli/app"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/llm"
	"parley/stats"
	"parley/world"
	"parley/world/part"
)

// Run describes a run: what to play, and where to store it.
type Run struct {
	// Kinds are those of your own that a plan file or the run file may name. Those that come with Parley are always there.
	Kinds []world.Kind

	// PlanFile is the plan file to play. Plan is a plan built in Go. Set one of them. Default: the plan in the run file.
	PlanFile string
	Plan     Plan
	// Set overrides values of the plan, written KEY=VALUE with the keys of a plan file: "limits.concurrency=8".
	Set []string

	// File is the run file. If it exists, the run is resumed. Default: the run is in memory, and is lost when Play returns.
	File string
	// Journal stores the run instead of File. Read reads it. Most programs use a *journal.Memory.
	Journal journal.Journal

	// Providers are added to those of the plan, by name. Default: the plan's own and the presets.
	Providers map[string]Provider
	// Trust allows environment variables to be sent to hosts, written VAR=HOST: "LAB_KEY=https://lab.example". A plan may
	// come from a stranger, so no other variable is sent. Default: a preset's variable to its hosts, and any to this machine.
	Trust []string
	// AllowFiles are folders with files that a plan file may name, besides its own folder.
	AllowFiles []string

	// Drain stops the run when it is done: no call begins, and those in flight are answered and recorded. Default: never.
	Drain context.Context //nolint:containedctx // a second signal, beside the context of Play
	// Progress is called after each event, from one goroutine at a time. It must not block. Default: no calls.
	Progress func(Progress)
	// Wrap wraps what answers for a provider, by its name, so that you can add headers to a request, answer it from a cache or a model of your own,
	// or look at answers. It is below limits, retries and the budget: each attempt passes it. It is called from many goroutines at once. With
	// it, no batches are used. Default: nothing is wrapped.
	Wrap func(provider string, next llm.Model) llm.Model
	// Log receives what happens, as parley run --events writes it: the run, its episodes and waves as information, failures and outages as
	// warnings, calls for debugging. Values may be hostile text. Default: nothing.
	Log *slog.Logger
}

// Progress is the state of a run after an event.
type Progress struct {
	Episodes int       // that the plan asked for so far
	Ended    int       // of them
	Failed   int       // of those that ended
	Calls    int       // of models and people that were answered or failed
	Cost     llm.Money // of them
	// Call and Episode are what just ended; one or both are nil.
	Call    *journal.Replied
	Episode *journal.Ended
}

// Result is the state of a run when Play returns. It is about the whole run, including earlier calls of Play, unless a
// field says otherwise.
type Result struct {
	// State is complete, stopped (by a budget, Drain or the end of the context: call Play again to resume) or failed.
	// Reason says why the run is not complete: its Kind is journal.ByBudget, say.
	State  journal.State
	Reason journal.Reason

	Episodes int // that the plan asked for
	Ended    int // of them
	Failed   int // of those that ended
	// Fault is the commonest reason why episodes failed; it may quote a provider. Empty: none failed.
	Fault string
	Calls int // of models and people that were answered or failed
	Asked int // of them: by this call of Play
	Acts  int // on environments, and on other things outside of the world, that were answered or failed
	// Cost leaves out the models of Unpriced, whose price is not known.
	Cost     llm.Money
	Unpriced []string
	Wall     time.Duration // of this call of Play
	// Digest is the same for the same outcomes.
	Digest string
	// Scores are by score, cell, agent and seat: see Reader.Estimates for other groups.
	Scores []Estimate
}

// Estimate is the mean of one score in a group of episodes. Fields that do not define the group are empty.
type Estimate struct {
	Score, Cell, Agent, Model, Seat string
	// Episodes counts the episodes that have the score. Failed episodes have none.
	Episodes int
	// Mean has a 95% interval. Its N counts independent observations.
	Mean stats.Quantity
}

// Play plays a run until it is complete or must stop. Every answer is durable in the run file before it counts, so the
// same call with the same file resumes a run that was stopped or killed. A plan may ask for more than was played; a plan
// that would change what was played is refused.
//
// When ctx is done, the calls in flight are canceled: Play then returns the cause of ctx, and a Result if play had begun. A
// run that stops for another reason, such as its budget, is not an error: look at Result.State. A run is complete even if
// episodes failed: look at Result.Failed.
func Play(ctx context.Context, r Run) (*Result, error) {
	p, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	drain := r.Drain
	if drain == nil {
		drain = context.Background()
	}
	end, events := func() {}, p.Events
	p.Events = func(e app.Event) {
		if e.Opened != nil {
			end = takeAnswers(ctx, e.Opened)
		}
		events(e)
	}
	sum, err := p.Run(ctx, drain)
	end()
	if err == nil && ctx.Err() != nil && sum.State != journal.Complete {
		err = context.Cause(ctx)
	}
	if sum == nil {
		return nil, r.explain(err)
	}
	return resultOf(sum), r.explain(err)
}

// takeAnswers takes the answers of people in seats of a run, as parley sit sends them, until end is called.
func takeAnswers(ctx context.Context, o *app.Opened) (end func()) {
	if o.Seats == nil {
		return func() {}
	}
	end, err := control.Serve(ctx, o.File, map[string]control.Handler{seat.Verb: o.Seats.Handle})
	if err != nil {
		o.Seats.Drain() // nobody could answer: the run stops instead of waiting
		return func() {}
	}
	return end
}

// prepare turns a Run into an app.Play.
func (r Run) prepare(ctx context.Context) (app.Play, error) {
	if r.File != "" && r.Journal != nil {
		return app.Play{}, errors.New("parley: File and Journal are both set: leave one out")
	}
	if plan := r.Plan.kind; plan.Name != "" {
		others := slices.DeleteFunc(slices.Clone(r.Kinds), func(k world.Kind) bool { return k.Name == plan.Name })
		r.Kinds = append(others, plan)
	}
	r.Kinds = withStandard(r.Kinds)
	for _, k := range r.Kinds {
		if err := part.Check(k); err != nil {
			return app.Play{}, fmt.Errorf("parley: kind %s: %w", k.Name, err)
		}
	}
	gate, err := gateOf(r.Trust)
	if err != nil {
		return app.Play{}, err
	}
	sets, err := setsOf(r.Providers)
	if err != nil {
		return app.Play{}, err
	}
	sets = append(sets, r.Set...)
	plan, err := r.plan(ctx, sets)
	if err != nil {
		return app.Play{}, r.explain(err)
	}
	p := app.Play{
		Plan: plan, PlanFile: r.PlanFile, Kinds: r.Kinds, File: r.File, Journal: r.Journal, Tool: cli.Version(),
		Config: app.Config{Models: modelsOf(r.Providers), Wrap: r.Wrap, Trust: gate}, Places: map[string]string{},
	}
	for name := range r.Providers {
		p.Places[name] = location(name)
	}
	if p.File == "" && p.Journal == nil {
		p.Journal = &journal.Memory{}
	}
	if plan == nil {
		p.Sets, p.MustExist, p.Reach = sets, true, &planfile.Reach{Folders: r.AllowFiles}
	}
	p.Events = app.LogTo(ctx, r.Log)
	if r.Progress != nil {
		var now Progress
		log := p.Events
		p.Events = func(e app.Event) {
			log(e)
			switch {
			case e.Opened != nil:
				now = progressOf(e.Opened.Head, e.Opened.Earlier)
			case e.Event != (engine.Event{}) && e.Began == nil:
				r.Progress(now.add(e.Event))
			}
		}
	}
	return p, nil
}

// progressOf returns the progress before this process.
func progressOf(head *journal.Head, calls int) Progress {
	n := head.Episodes()
	return Progress{Episodes: n.Total, Ended: n.Done(), Failed: n.Failed, Calls: calls, Cost: head.Spent}
}

// add updates the progress with an event.
func (p *Progress) add(e engine.Event) Progress {
	p.Call, p.Episode = e.Replied, e.Ended
	if st := e.Staged; st != nil {
		p.Episodes = max(p.Episodes, st.First+st.Specs.Len())
	}
	if e.Replied != nil {
		spent := journal.Spending{Calls: p.Calls, Cost: p.Cost}
		spent.Add(e.Replied)
		p.Calls, p.Cost = spent.Calls, spent.Cost
	}
	if e.Ended != nil {
		p.Ended++
		if e.Ended.Outcome.Failed != "" {
			p.Failed++
		}
	}
	return *p
}

func resultOf(s *app.Summary) *Result {
	r := &Result{
		State: s.State, Reason: s.Reason, Episodes: s.Episodes.Total, Ended: s.Episodes.Complete + s.Episodes.Failed, Failed: s.Episodes.Failed,
		Calls: s.Calls.Total, Asked: s.Calls.Asked, Acts: s.Acts.Total, Unpriced: s.Unpriced, Wall: time.Duration(s.Wall * float64(time.Second)), Digest: s.Digest,
	}
	if s.Cost != nil {
		r.Cost = *s.Cost
	}
	if s.Fault != nil {
		r.Fault = s.Fault.String()
	}
	r.Scores = estimatesOf(s.Scores)
	return r
}

// estimatesOf returns estimates as the library gives them.
func estimatesOf(all []results.Estimate) (out []Estimate) {
	for _, one := range all {
		out = append(out, Estimate{Score: one.Score, Cell: one.Cell, Agent: one.Agent, Model: one.Model, Seat: one.Seat, Episodes: one.Episodes, Mean: one.Quantity()})
	}
	return out
}
