// Package task is the kind of tasks that programs work on: coding agents and others, which get a folder and a question, and whose result is
// checked.
//
// An episode is one task and one agent. Tasks are Harbor task folders as they are, or rows of a file. A deal is a task, so the same deal
// is the same task for every agent. The world asks the seat once, with the work; the engine's programs do the rest: they start the agent, end it, and check
// its result where it cannot reach.
//
// A feature of Harbor that is not supported is an error that names it, and is never left out in silence. Package task starts nothing itself.
package task

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

//go:embed example.yaml all:tasks
var examples embed.FS

// Kind returns the kind of tasks for programs.
func Kind() world.Kind { return world.Define(definition{}) }

type definition struct{}

var (
	_ world.Measurer[Params] = definition{}
	_ part.Loader[Params]    = definition{}
	_ part.Starter[Params]   = definition{}
	_ part.TaskNamer[Params] = definition{}
	_ part.StandIn           = definition{}
	_ part.Reporter          = definition{}
	_ part.Storyteller       = definition{}
	_ part.Tabulator         = definition{}
)

// About describes the kind.
func (definition) About() world.About {
	plan, _ := examples.ReadFile("example.yaml")
	files := map[string]string{}
	embedded("tasks", files)
	return world.About{Name: "task", Version: 1, Doc: "Programs work on tasks in a folder, and a check says what the result is worth.", Example: string(plan), ExampleFiles: files}
}

// embedded adds the files in a folder of the program.
func embedded(dir string, to map[string]string) {
	entries, _ := examples.ReadDir(dir)
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			embedded(name, to)
		} else if b, err := examples.ReadFile(name); err == nil {
			to[name] = string(b)
		}
	}
}

// Seat is the seat of the program.
const Seat = "solver"

// Defaults returns the params that apply if a plan file sets nothing.
func (definition) Defaults() *Params {
	return &Params{Runtime: Runtime{Name: local}, Network: "host", Output: 64 << 10, Result: 256 << 20, Range: []float64{0, 1}, Pass: 1, Only: []string{}, Ignore: []string{}}
}

// Seats checks the params.
func (definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return []string{Seat}, nil
}

// Measures declares the scores.
func (definition) Measures(p *Params) []world.Measure {
	seats := []string{Seat}
	reward := world.Measure{Name: "reward", Seats: seats, Bounds: world.Anything()}
	if len(p.Range) == 2 && p.Range[0] < p.Range[1] {
		reward.Bounds = world.Bounds{Low: p.Range[0], High: p.Range[1]}
	}
	return []world.Measure{reward, {Name: "passed", Seats: seats, Bounds: world.Share()}}
}

// Starts says that the seat wants a program, and whose code checks results.
func (definition) Starts(p *Params) world.Starts {
	s := world.Starts{Seats: []string{Seat}, Command: p.Runtime.Command}
	if p.Runtime.Name == local || len(p.Runtime.Command) > 0 {
		s.Code = []world.CodeName{{Name: p.Tasks, Param: "tasks"}}
	} else {
		s.Engine = p.Runtime.Name
	}
	for _, t := range p.tasks() {
		if t.Solution == nil {
			s.Unsolved = append(s.Unsolved, "task "+t.Name)
		}
	}
	return s
}

// World returns the world of one episode.
func (definition) World(p *Params, _ world.Lineup) (world.World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return world.Func(p.play), nil
}

// Exhibitor returns an empty part of a report.
func (definition) Exhibitor() exhibit.Exhibitor { return newReport() }

// Story tells what the program did.
func (definition) Story(p world.Played, transcript []world.TranscriptEntry) []exhibit.Exhibit {
	return story(p, transcript)
}

// Tables has a row for each episode.
func (definition) Tables() []part.NoteTable { return tables() }

// StandIn writes the commands that solve the example tasks.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standIn(model, req, seed)
}

// Result is what is recorded of an episode.
type Result struct {
	Task string `json:"task"`
	// Reward is that of the check. Nil: there is none.
	Reward  *float64           `json:"reward,omitempty"`
	Passed  bool               `json:"passed"`
	Rewards map[string]float64 `json:"rewards,omitempty"` // all of them, if there is another one

	Exit         int     `json:"exit"`
	Seconds      float64 `json:"seconds,omitempty"`
	TimedOut     bool    `json:"timed_out,omitempty"`
	Limit        string  `json:"limit,omitempty"`
	Calls        int     `json:"calls,omitempty"`
	Changed      int     `json:"changed"`
	CheckExit    int     `json:"check_exit"`
	CheckSeconds float64 `json:"check_seconds,omitempty"`
}

// outcome is what of a result is in the outcome: what took time differs from run to run, and outcomes of equal runs are equal.
func (r Result) outcome() Result {
	r.Seconds, r.CheckSeconds = 0, 0
	return r
}

// play plays one episode.
func (p *Params) play(t *world.Table) world.Outcome {
	task := p.tasks()[t.Deal().Number%len(p.tasks())]
	t.Note("task", "", task.Name)
	reply := t.One(world.Call{Seat: Seat, Label: "solve", Ask: llm.Request{Messages: []llm.Message{llm.User(task.Prompt)}}, Work: p.work(&task)})
	var done world.Done
	switch {
	case !reply.OK():
		return world.Outcome{Failed: fmt.Sprintf("task %s: the program failed (%s)", task.Name, reply.Failed)}
	case len(reply.JSON) == 0 || json.Unmarshal(reply.JSON, &done) != nil || done.Check == nil:
		return world.Outcome{Failed: fmt.Sprintf("task %s: no program worked on it", task.Name)}
	}
	r := Result{
		Task: task.Name, Exit: done.Exit, Seconds: done.Seconds, TimedOut: done.TimedOut, Limit: done.Limit, Calls: done.Calls,
		Changed: len(done.Changed) + done.More, CheckExit: done.Check.Exit, CheckSeconds: done.Check.Seconds,
	}
	if done.Check.Failed != "" {
		t.Note("result", Seat, r)
		return world.Outcome{Failed: fmt.Sprintf("task %s: %s", task.Name, exhibit.Shorten(done.Check.Failed, 400)), Data: r.outcome()}
	}
	reward, ok := rewardOf(done.Check.Rewards)
	if !ok {
		t.Note("result", Seat, r)
		return world.Outcome{Failed: fmt.Sprintf("task %s: the check gave several rewards, and none is called reward", task.Name), Data: r.outcome()}
	}
	r.Reward, r.Passed = &reward, reward >= p.Pass
	if len(done.Check.Rewards) > 1 {
		r.Rewards = done.Check.Rewards
	}
	t.Note("result", Seat, r)
	passed := exhibit.Indicator(r.Passed)
	return world.Outcome{Scores: []world.Score{{Seat: Seat, Name: "reward", Value: reward}, {Seat: Seat, Name: "passed", Value: passed}}, Data: r.outcome()}
}

// rewardOf returns the reward of a check: the one called reward, or the only one.
func rewardOf(all map[string]float64) (float64, bool) {
	if v, ok := all["reward"]; ok {
		return v, true
	}
	for _, v := range all {
		return v, len(all) == 1
	}
	return 0, false
}

// work returns what the program gets.
func (p *Params) work(t *Task) *world.Work {
	w := &world.Work{
		Name: "task " + t.Name, Files: t.Files, Env: t.Env, MaxCalls: p.Calls, MaxTokens: p.Tokens, MaxOutput: p.Output, MaxResult: int64(p.Result), AtOnce: p.AtOnce,
		Timeout: t.Timeout, Solution: t.Solution,
		Where: world.Where{Workdir: t.Workdir, Network: p.Network, Wrap: p.Runtime.Command},
	}
	if p.Timeout > 0 {
		w.Timeout = p.Timeout
	}
	if p.Runtime.Name != local && len(p.Runtime.Command) == 0 {
		w.Where.Engine, w.Where.Image, w.Where.Build, w.Where.CPUs, w.Where.Memory = p.Runtime.Name, t.Image, t.Build, t.CPUs, t.Memory
	}
	check := *t.Check
	if p.CheckTimeout > 0 {
		check.Timeout = p.CheckTimeout
	}
	w.Check = &check
	return w
}

// TaskName names the tasks of a plan: a deal is one of them.
func (definition) TaskName(p *Params) world.Task {
	all := p.tasks()
	if len(all) == 0 {
		return world.Task{}
	}
	h := sha256.New()
	for _, t := range all {
		_, _ = h.Write([]byte(t.Name + "\x00" + t.Prompt + "\x00"))
	}
	return world.Task{Name: hex.EncodeToString(h.Sum(nil)[:8]), Deals: len(all)}
}

// tasks lists the tasks that are played.
func (p *Params) tasks() []Task {
	if len(p.Only) == 0 {
		return p.Loaded
	}
	return slices.DeleteFunc(slices.Clone(p.Loaded), func(t Task) bool { return !slices.Contains(p.Only, t.Name) })
}

// names lists the names of tasks.
func names(of []Task) string {
	var all []string
	for _, t := range of {
		all = append(all, t.Name)
	}
	return strings.Join(all, ", ")
}
