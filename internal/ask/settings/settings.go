// Package settings declares what a user decides about how calls are made and paid for: each setting once, with its meaning and its
// default. Plan files, flags and the library fill it in; dispatch, batch and engine have it in their configs and read it there.
//
// The tags of a field are those of plan files, which internal/run/planfile explains. A field without them can only be set by a flag or a
// program.
package settings

import (
	"time"

	"parley/llm"
)

// Settings are all of them. The zero value asks without limits, waits for nobody and remembers nothing.
type Settings struct {
	Limits        Limits    `json:"limits,omitzero" doc:"Limits of the whole run. Limits of an account are under providers.NAME.limits."`
	Budget        llm.Money `json:"budget,omitempty" doc:"The most the run may cost, in US dollars. When the next call might not fit, the run stops and can be resumed. A server that gives more than it was asked for can exceed it, within the bounds that docs/how-to/providers.md states." default:"none" aliases:"max_cost,cost" form:"dollars"`
	EpisodeBudget llm.Money `json:"episode_budget,omitempty" doc:"The most an episode may cost, in US dollars. An episode that might exceed it with its next calls fails with that reason; the others continue. It cannot change when a run is resumed." default:"none" aliases:"budget_per_episode,cost_per_run_limit,max_cost_per_episode" form:"dollars"`
	Cache         string    `json:"cache" doc:"A folder that keeps answers, so that other runs need not pay for them again; or off. The path is relative to the plan file's folder." default:"off" filled:"true"`
	Pace          string    `json:"pace" doc:"free: each episode continues as soon as its own turn is answered. wave: calls are made together, when every episode in progress waits for one." default:"free" oneof:"free,wave"`
	Batch         Batch     `json:"batch,omitzero" doc:"How waves use the providers' batch APIs, at half the price." default:"auto"`
	Retry         Retry     `json:"retry,omitzero" doc:"How failed calls are retried."`
	Prices        string    `json:"prices,omitempty" doc:"The path of a file of prices, from the plan file's folder." default:"the built-in prices" filled:"true"`
}

// Plan returns the settings of a plan that sets none.
func Plan() Settings {
	return Settings{Pace: "free", Retry: Retry{Unreachable: 10 * time.Minute}}
}

// Waves reports whether calls are made in waves.
func (s Settings) Waves() bool { return s.Pace == "wave" }

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

// Retry says how failed calls are retried. The wait for a provider that cannot be reached is counted from the first call that did not reach it.
// Meanwhile one call at a time tries, and the others wait. A call with a model to fall back to does not wait.
type Retry struct {
	Unreachable time.Duration `json:"unreachable" doc:"How long to wait for a provider that cannot be reached: connections are refused, a proxy answers 502 to 504, or it is still loading its model. Calls to other providers continue. After that the run stops and can be resumed. 0s does not wait." default:"10m" form:"duration or zero"`
	// Attempts is the maximum number of attempts at one model, not counting those that the provider refused for now, unless there is a model
	// to fall back to. Default: 5.
	Attempts int `json:"-"`
	// Base and MaxPause bound the pause after the n-th failure: a random time up to min(MaxPause, Base·2ⁿ⁻¹), after the time that the
	// provider asks us to wait. Defaults: 500ms and 60s.
	Base, MaxPause time.Duration `json:"-"`
	// Deadline bounds a whole call, including queueing, pauses and fallbacks. A call that is rate-limited or meets an overloaded provider is
	// retried until then. Unreachable is added to it. Default: 1 hour; negative: none.
	Deadline time.Duration `json:"-"`
}
