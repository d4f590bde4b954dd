package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/trust"
	"parley/internal/run/engine"
	"parley/internal/run/estimate"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// Check checks a plan before it is played. It asks no provider.
type Check struct {
	Plan *planfile.Plan
	// File is the plan file.
	File string
	// Episodes and Latency are those of estimate.Config.
	Episodes int
	Latency  time.Duration
	// Watch is that of estimate.Config.
	Watch func(played, of int)
	// Act plays the sample in the plan's environments on their servers.
	// Default: the servers are only asked whether they answer.
	Act bool
	// Env looks up whether keys are set. Their values are not used. Default: no key is set.
	Env func(name string) (string, bool)
	// Trust says which keys may go where. Default: that of Config.
	Trust *trust.Gate
}

// Estimate is the estimate of a plan, with the keys, servers and files that it needs.
type Estimate struct {
	estimate.Estimate
	Keys []Key `json:"keys"`
	// Servers are those of the plan's environments.
	Servers []world.Presence `json:"servers"`
	// Programs are the agents that are programs, and what runs them.
	Programs []Program `json:"started,omitempty"`
	// Allow are the programs and the code that the plan runs.
	Allow []Permission `json:"permissions,omitempty"`
	// Outside are the files outside the plan's folder that the user allows it to name.
	Outside []string `json:"outside_files"`
	// Story is an episode that was played with Act, as its kind tells it.
	Story []exhibit.Frame `json:"story,omitempty"`
	// StoryFailed is a part of the kind that failed while it was told. It is told nevertheless.
	StoryFailed error `json:"-"`
	// NoPrice are the models that need a price, since there is a budget.
	NoPrice []string `json:"-"`
	// Recorded compares the plan with its run file. Nil: the file does not exist, or has the same plan.
	Recorded *Recorded `json:"recorded,omitempty"`
}

// Recorded is the existing run file of a plan.
type Recorded struct {
	File    string         `json:"file"`
	Grown   *growth.Growth `json:"grown,omitempty"`   // the plan asks for more
	Refused string         `json:"refused,omitempty"` // why the plan cannot be played into the file
	Empty   bool           `json:"empty,omitempty"`   // nothing was played into it
}

// Key is an environment variable that a provider needs, or a program that prints its key.
type Key struct {
	Provider string `json:"provider"`
	Env      string `json:"env,omitempty"`
	Command  string `json:"command,omitempty"` // the program with its arguments
	// Credentials is google for Google's credentials, which are found only when they are needed.
	Credentials provider.Credentials `json:"credentials,omitempty"`
	Set         bool                 `json:"set"` // the variable is set, or the program is found
	// Sent lists the hosts that get it.
	Sent []Destination `json:"sent_to"`
}

// Permission is what the user must allow before it is run.
type Permission struct {
	Flag    string `json:"trust"`   // the value of --trust
	Allowed string `json:"allowed"` // why it may run: remembered or given. Empty: ask the user
}

// Destination is a host that gets a key.
type Destination struct {
	Host string `json:"host"`
	// Allowed is why the host may get it: preset, loopback, remembered or given. Empty: ask the user.
	Allowed string `json:"allowed"`
	// Plain means that the key is sent unencrypted.
	Plain bool `json:"unencrypted"`
	// Flag is the value of --trust that allows it.
	Flag string `json:"-"`
}

// Run estimates the plan and looks up its keys and servers.
func (c Check) Run(ctx context.Context) (*Estimate, error) {
	prices, err := Prices(c.Plan.Providers, c.Plan.Prices)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	if err := checkRules(c.Plan); err != nil {
		return nil, err
	}
	if err := checkActors(ctx, c.Plan); err != nil {
		return nil, err
	}
	servers, all := probeServers(ctx, c.Plan)
	var played journal.Journal
	actors := func(e *engine.Config) (func(context.Context), error) {
		if !c.Act || !all {
			return setLocalActor(e, c.Plan)
		}
		played = e.Journal
		e.Begun.Run = "check-" + newID() // sessions on servers carry this name
		return setActor(e, c.Plan, e.Begun.Run)
	}
	e, err := estimate.Config{Plan: c.Plan, Prices: prices, Episodes: c.Episodes, Latency: c.Latency, Watch: c.Watch, Actors: actors}.Run(ctx)
	if err != nil {
		return nil, err
	}
	out := &Estimate{Estimate: *e, Keys: c.keys(e.Accounts), Servers: servers, Outside: append([]string{}, c.Plan.Outside...)}
	for _, n := range droppedSettings(c.Plan) {
		out.Warnings = append(out.Warnings, n.Text)
	}
	started, err := programNeeds(c.Plan, c.File, false)
	if err != nil {
		return nil, err
	}
	out.Programs = programsOf(c.Plan)
	for _, n := range started {
		out.Allow = append(out.Allow, Permission{Flag: n.Flag(), Allowed: c.Trust.Why(n.Grant)})
	}
	c.unpriced(out, prices)
	if says := c.tightBudget(e, prices); says != "" {
		out.Warnings = append(out.Warnings, says)
	}
	if played != nil {
		if out.Story, out.StoryFailed, err = exampleStory(ctx, played, c.Plan.Kind); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// unpriced warns of the models without a price, if there is a budget, as a run would refuse them.
func (c Check) unpriced(e *Estimate, prices *price.Table) {
	if !c.Plan.HasBudget() {
		return
	}
	table := budget.NewPrices(prices, func(string) bool { return true })
	for _, a := range c.Plan.Agents {
		if a.Model == "" || a.Human() || table.Lookup(a.Model).OK || slices.Contains(e.NoPrice, a.Model) {
			continue
		}
		e.NoPrice = append(e.NoPrice, a.Model)
		e.Warnings = append(e.Warnings, notReady(c.Plan, a, table.Unknown(a.Model)).Error())
	}
}

// notReady says where in the plan the model is that cannot be asked.
func notReady(plan *planfile.Plan, agent world.Agent, err error) error {
	account, _ := llm.SplitModel(agent.Model)
	place, e := plan.Place("agents", agent.Name, "model"), llm.AsError(err)
	if e.Kind == llm.KindAuth && plan.Places[account] != "" { // the fault of the provider, for all its models
		place = plan.Places[account]
	}
	return fmt.Errorf("%s: %s", place, e.Message)
}

// enoughRoom is for how many calls at once a budget must have room, so that check does not warn.
const enoughRoom = 16

// tightBudget warns if the budget has room for few calls at once of a server that is not known to stop at max_tokens: of the model for whose
// calls most is set aside.
func (c Check) tightBudget(e *estimate.Estimate, prices *price.Table) string {
	var t estimate.Room
	wanted := 0
	if e.Budget != nil {
		for _, r := range e.Budget.Rooms {
			if n := c.wantedCalls(e, r.Model); r.Exceeds && r.AtOnce > 0 && r.AtOnce < n && r.Aside > t.Aside {
				t, wanted = r, n
			}
		}
	}
	if wanted == 0 {
		return ""
	}
	calls := "1 call"
	if t.AtOnce > 1 {
		calls = fmt.Sprintf("%d calls", t.AtOnce)
	}
	do := "give a budget"
	if p, _ := prices.Find(t.Model); p.Context == 0 {
		do = "give context of the model in the price file, or a budget"
	}
	return fmt.Sprintf("the server of %s is not known to stop at max_tokens: with this budget about %s at a time, since its longest answer could cost %v, until one has ended at max_tokens; %s of %v, which has room for %d",
		t.Model, calls, roundUp(t.Aside), do, roundUp(t.Aside)*llm.Money(wanted), wanted)
}

// roundUp rounds an amount up, to two digits or to cents.
func roundUp(m llm.Money) llm.Money {
	unit := llm.Money(1)
	for unit < llm.Dollar/100 && 100*unit <= m {
		unit *= 10
	}
	return (m + unit - 1) / unit * unit
}

// wantedCalls returns how many calls of a model could be in flight at once, at most enoughRoom.
func (c Check) wantedCalls(e *estimate.Estimate, model string) int {
	n := min(enoughRoom, e.Episodes.High)
	limits := []int{c.Plan.Limits.Concurrency, c.Plan.Limits.Live}
	account, _ := llm.SplitModel(model)
	for _, p := range c.Plan.Providers {
		if p.Name == account {
			limits = append(limits, p.Limits.Concurrency)
		}
	}
	for _, limit := range limits {
		if limit > 0 {
			n = min(n, limit)
		}
	}
	return n
}

// keys lists the environment variables that accounts need.
func (c Check) keys(accounts []string) []Key {
	keys := []Key{}
	for _, p := range c.Plan.Providers {
		if !slices.Contains(accounts, p.Name) || !p.HasKey() || p.InProcess() {
			continue
		}
		k := Key{Provider: p.Name, Sent: destinations(c.Trust, p)}
		switch {
		case len(p.KeyCommand) > 0:
			_, err := exec.LookPath(p.KeyCommand[0])
			k.Command, k.Set = provider.CommandLine(p.KeyCommand), err == nil
		case p.Credentials != "":
			k.Credentials, k.Set = p.Credentials, true
		default:
			k.Env = p.KeyEnv
			if c.Env != nil {
				v, ok := c.Env(p.KeyEnv)
				k.Set = ok && v != ""
			}
		}
		keys = append(keys, k)
	}
	return keys
}

// errFound ends the search for an episode.
var errFound = errors.New("found")

// exampleStory tells the first episode in j that did not fail or, if all did, the first. It is told also where a part of the kind
// fails: failed names it, and is one of results.CallKind.
func exampleStory(ctx context.Context, j journal.Journal, kind world.Kind) (frames []exhibit.Frame, failed, err error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	var found *journal.Ended
	err = j.Read(ctx, journal.Whole(), func(e journal.Entry) error {
		ended, ok := e.(*journal.Ended)
		switch {
		case !ok:
			return nil
		case ended.Outcome.Failed == "":
			found = ended
			return errFound
		case found == nil:
			found = ended
		}
		return nil
	})
	if found == nil || err != nil && !errors.Is(err, errFound) {
		return nil, nil, err
	}
	read, err := results.ReadTranscript(ctx, j, head, kind, found.Episode)
	if err != nil {
		return nil, nil, err
	}
	spec, _ := results.Outcomes(head, kind).Spec(found.Episode)
	kind = kind.Of(spec)
	failed = read.Mark(kind)
	exhibits, err := read.Story(kind, world.Played{Episode: found.Episode, Spec: spec, Outcome: found.Outcome})
	failed = cmp.Or(err, failed, read.Failed)
	for _, e := range exhibits {
		if replay, ok := e.Show.(exhibit.Replay); ok {
			frames = append(frames, replay.Frames...)
		}
	}
	return frames, failed, nil
}
