// Package settings declares what a user decides about how calls are made and paid for: each setting once, with its meaning and its
// default. New makes them; plan files, flags and the library set some of them; dispatch, batch and engine get a pointer and change nothing.
//
// The tags of a field are those of plan files, which internal/run/planfile explains. A field of which JSON knows nothing can only be set by
// a flag or a program. The default is a value of the field, or says what its zero value does. A tag with the name of a Caller is the default
// of that caller. The tag flag is for the help of flags, where doc is too long.
package settings

import (
	"cmp"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// Settings are all of them. The zero value asks without limits, does not retry, waits for nobody and remembers nothing.
type Settings struct {
	Limits        Limits    `json:"limits,omitzero" doc:"Limits of the whole run. Limits of an account are under providers.NAME.limits."`
	Budget        llm.Money `json:"budget,omitempty" doc:"The most the run may cost, in US dollars. When the next call might not fit, the run stops and can be resumed. A server that gives more than it was asked for can exceed it, within the bounds that docs/how-to/providers.md states." default:"none" aliases:"max_cost,cost" form:"dollars"`
	EpisodeBudget llm.Money `json:"episode_budget,omitempty" doc:"The most an episode may cost, in US dollars. An episode that might exceed it with its next calls fails with that reason; the others continue. It cannot change when a run is resumed." default:"none" aliases:"budget_per_episode,cost_per_run_limit,max_cost_per_episode" form:"dollars"`
	Cache         string    `json:"cache" doc:"A folder that keeps answers, so that other runs need not pay for them again; or off. The path is relative to the plan file's folder." flag:"Cache answers in this folder, and reuse them." default:"off" filled:"true"`
	Pace          string    `json:"pace" doc:"free: each episode continues as soon as its own turn is answered. wave: calls are made together, when every episode in progress waits for one." default:"free" oneof:"free,wave"`
	Batch         Batch     `json:"batch,omitzero" doc:"How waves use the providers' batch APIs, at half the price." default:"auto"`
	Retry         Retry     `json:"retry,omitzero" doc:"How failed calls are retried."`
	Prices        string    `json:"prices,omitempty" doc:"The path of a file of prices, from the plan file's folder." flag:"File of prices that override the built-in ones." default:"the built-in prices" filled:"true"`
}

// Caller is who makes calls, and the name of the tag with its defaults.
type Caller string

// The callers. Where a field has no tag of a caller, it has the default of plans.
const (
	Plan    Caller = "default"
	Ask     Caller = "ask"
	Gateway Caller = "gateway"
	Library Caller = "library"
)

// New returns the settings of a caller that is told nothing.
func New(c Caller) *Settings {
	s := &Settings{}
	each(reflect.ValueOf(s).Elem(), "", func(_ string, f reflect.StructField, at reflect.Value) {
		switch text := c.text(f); field := at.Addr().Interface().(type) {
		case *time.Duration:
			*field, _ = time.ParseDuration(text)
		case *int:
			*field, _ = strconv.Atoi(text)
		case *string:
			if f.Tag.Get("oneof") != "" {
				*field = text
			}
		}
	})
	return s
}

// text returns the default of a field as it is written.
func (c Caller) text(f reflect.StructField) string {
	return cmp.Or(f.Tag.Get(string(c)), f.Tag.Get(string(Plan)))
}

// Vars returns what each setting means, by its path as retry_unreachable, and its default for each caller, as retry_unreachable_gateway. They
// are for the help of flags.
func Vars() map[string]string {
	vars := map[string]string{}
	each(reflect.ValueOf(Settings{}), "", func(path string, f reflect.StructField, _ reflect.Value) {
		vars[path] = cmp.Or(f.Tag.Get("flag"), f.Tag.Get("doc"))
		for _, c := range []Caller{Plan, Ask, Gateway, Library} {
			vars[path+"_"+string(c)] = c.text(f)
		}
	})
	return vars
}

// each calls visit with every setting below v.
func each(v reflect.Value, path string, visit func(path string, f reflect.StructField, at reflect.Value)) {
	for f, at := range v.Fields() {
		if name := path + strings.ToLower(f.Name); at.Kind() == reflect.Struct {
			each(at, name+"_", visit)
		} else {
			visit(name, f, at)
		}
	}
}

// HasBudget reports whether there is a budget of any kind, which needs the prices of all models.
func (s *Settings) HasBudget() bool { return s.Budget > 0 || s.EpisodeBudget > 0 }

// Waves reports whether calls are made in waves.
func (s *Settings) Waves() bool { return s.Pace == "wave" }

// Limits bound what happens at once.
type Limits struct {
	Concurrency int `json:"concurrency,omitempty" doc:"The largest number of calls in flight, over all providers." default:"what the providers allow" aliases:"calls,parallel,workers" range:"1..1000000"`
	Live        int `json:"live,omitempty" doc:"The largest number of episodes in progress." default:"20000" range:"1..1000000"`
}

// Batch says how waves use batch APIs.
type Batch struct {
	Route    string        `json:"route,omitempty" doc:"auto: a wave's calls of a model use the batch API if there are many and there is time. batch: wherever there is a batch API. live: never; batches that are open are still collected." default:"auto" oneof:"auto,batch,live"`
	Min      int           `json:"min,omitempty" doc:"The smallest number of calls of one model for a batch; fewer are made live." default:"100, and 2 with batch" range:"1..1000000"`
	Deadline time.Duration `json:"deadline,omitempty" doc:"How long the batches of a wave may take. Calls that are not answered by then are cancelled and made live." default:"the provider's, a day"`
	Poll     time.Duration `json:"poll,omitempty" doc:"How long to wait before checking a batch again; later checks are further apart, up to thirty times that." default:"2s"`
	Cancel   bool          `json:"cancel,omitempty" doc:"Whether open batches are cancelled at the provider when the run is aborted with a second Ctrl-C. What they have answered is billed and collected later." default:"false"`
}

// Least returns Min or its default, which depends on the route.
func (b *Batch) Least() int {
	switch {
	case b.Min > 0:
		return b.Min
	case b.Route == "auto":
		return 100
	default:
		return 2
	}
}

// Retry says how failed calls are retried. The wait for a provider that cannot be reached is counted from the first call that did not reach it.
// Meanwhile one call at a time tries, and the others wait. A call with a model to fall back to does not wait.
//
// A run waits long, since nobody watches it. A person waits for ask, and the clients of the gateway soon give up. A program that uses the library
// may have something better to do than to wait. The gateway has a deadline of its own, since a stream that has begun may take any time.
type Retry struct {
	Unreachable time.Duration `json:"unreachable" doc:"How long to wait for a provider that cannot be reached: connections are refused, a proxy answers 502 to 504, or it is still loading its model. Calls to other providers continue. After that the run stops and can be resumed. 0s does not wait." flag:"How long to wait for a provider that cannot be reached, such as one that is restarting; 0 fails at once." default:"10m" ask:"2m" gateway:"1m" library:"0s" range:"0s"`
	Retries     int           `json:"-" doc:"How often to retry a failed call, not counting rate limits." default:"4"`
	Pause       time.Duration `json:"-" doc:"The pause after the n-th failure is random, at most this times 2 to the n-1, after the time that the provider asks for." default:"500ms"`
	MaxPause    time.Duration `json:"-" doc:"The longest such pause." default:"1m"`
	Deadline    time.Duration `json:"-" doc:"The longest time for a call, with queueing, pauses and fallbacks. A call that the provider refuses for now is retried until then. 0s: any." default:"1h" gateway:"0s"`
}

// Longest returns the longest time for a call, with the time for which its provider cannot be reached; 0: any.
func (r *Retry) Longest() time.Duration {
	if r.Deadline == 0 {
		return 0
	}
	return r.Deadline + min(r.Unreachable, math.MaxInt64-r.Deadline)
}
