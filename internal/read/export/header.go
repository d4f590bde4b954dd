package export

import (
	"math"
	"slices"
	"strings"
	"time"

	"parley/world"
)

// version is the version of Inspect's log format.
const version = 2

// header is an EvalLog without its samples.
type header struct {
	Version int             `json:"version"`
	Status  string          `json:"status,omitempty"`
	Eval    spec            `json:"eval"`
	Plan    evalPlan        `json:"plan"`
	Results *inspectResults `json:"results,omitempty"`
	Stats   *stats          `json:"stats,omitempty"`
	Error   *evalError      `json:"error,omitempty"`
}

// spec is an EvalSpec.
type spec struct {
	EvalID   string               `json:"eval_id"`
	RunID    string               `json:"run_id"`
	Created  string               `json:"created"`
	Task     string               `json:"task"`
	TaskID   string               `json:"task_id"`
	Version  int                  `json:"task_version"`
	Dataset  dataset              `json:"dataset"`
	Model    string               `json:"model"`
	Roles    map[string]modelRole `json:"model_roles,omitempty"`
	Config   config               `json:"config"`
	Packages map[string]string    `json:"packages"`
	Metadata map[string]any       `json:"metadata"`
}

type dataset struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
}

type config struct {
	Epochs int `json:"epochs"`
}

// modelRole is a ModelConfig.
type modelRole struct {
	Model  string   `json:"model"`
	Config generate `json:"config"`
}

// generate is a GenerateConfig: the parameters of an agent or a call.
type generate struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop_seqs,omitempty"`
	System      string   `json:"system_message,omitempty"`
}

type evalPlan struct {
	Name  string `json:"name"`
	Steps []step `json:"steps"`
}

type step struct {
	Solver string         `json:"solver"`
	Params map[string]any `json:"params"`
}

type stats struct {
	Started   string            `json:"started_at"`
	Completed string            `json:"completed_at"`
	Usage     map[string]*usage `json:"model_usage"`
}

type evalError struct {
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Colored   string `json:"traceback_ansi"`
}

type inspectResults struct {
	Total     int         `json:"total_samples"`
	Completed int         `json:"completed_samples"`
	Scores    []evalScore `json:"scores"`
}

type evalScore struct {
	Name     string            `json:"name"`
	Scorer   string            `json:"scorer"`
	Scored   int               `json:"scored_samples"`
	Unscored int               `json:"unscored_samples"`
	Metrics  map[string]metric `json:"metrics"`
}

type metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// spec returns the description of the run.
func (l *log) spec() spec {
	b := l.about.Begun
	s := spec{
		EvalID: b.Run, RunID: b.Run, TaskID: b.Run, Created: stamp(b.At), Task: b.Kind, Version: b.KindVersion,
		Dataset: dataset{Name: b.Kind, Samples: l.about.Episodes}, Roles: map[string]modelRole{}, Config: config{Epochs: 1},
		Packages: map[string]string{"parley": b.Tool}, Metadata: map[string]any{"seed": b.Seed, "state": l.about.Last.State, "reason": l.about.Last.Reason.String()},
	}
	var models []string
	for _, a := range b.Agents {
		name := modelOf(a)
		s.Roles[a.Name] = modelRole{Model: name, Config: generate{Temperature: a.Temperature, TopP: a.TopP, MaxTokens: a.MaxTokens, Seed: a.Seed, Stop: a.Stop, System: a.System}}
		if !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	s.Model = strings.Join(models, ", ")
	return s
}

func (l *log) plan() evalPlan {
	return evalPlan{Name: "plan", Steps: []step{{Solver: l.about.Begun.Kind, Params: map[string]any{}}}}
}

// modelOf returns the model of an agent, or its bot.
func modelOf(a world.Agent) string {
	if a.Bot != "" {
		return "bot/" + a.Bot
	}
	return world.ModelName(a.Model)
}

// total computes the mean of a score and its standard error.
type total struct {
	n          int
	mean, sums float64
}

func (t *total) add(x float64) {
	t.n++
	off := x - t.mean
	t.mean += off / float64(t.n)
	t.sums += off * (x - t.mean)
}

func (t *total) stderr() float64 { return math.Sqrt(t.sums / float64(t.n-1) / float64(t.n)) }

// stamp returns a time as Inspect writes it, or "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000+00:00")
}
