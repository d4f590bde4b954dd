package control

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/kit/files"
	"parley/llm"
)

// LiveSuffix is added to the name of a run file to name its live file.
const LiveSuffix = "-live"

// How often the file is written, and LiveMaxAge, when it is too old: its process was killed.
const (
	liveEvery  = time.Second
	LiveMaxAge = 5 * time.Second
)

// LiveState is what a process that plays a run is doing: calls in flight, speed, what it waits for. None of it is in the run file.
type LiveState struct {
	At      time.Time `json:"at"`
	Process int       `json:"process"` // its id

	InFlight        int64   `json:"in_flight"` // calls
	Waiting         int64   `json:"waiting"`   // for a provider's limits
	CallsPerSecond  float64 `json:"calls_per_second"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	ErrorsPerSecond float64 `json:"errors_per_second"` // failed attempts
	RateLimited     int64   `json:"rate_limited"`      // attempts of this process that were refused for a limit
	budget.Sums
	Burn      llm.Money `json:"burn_usd"`                // a minute, of late
	Projected llm.Money `json:"projected_usd,omitempty"` // of all known episodes, if the rest cost as much as those that ended; 0: unknown
	// Left is the estimated time until the run is complete, such as "2m to 5m left"; empty: unknown.
	Left string `json:"left,omitempty"`
	// Status is the kind's own status, and Waits is what calls wait for. Both may be hostile.
	Status []string `json:"status,omitempty"`
	Waits  []string `json:"waits,omitempty"`
	Models []Model  `json:"models,omitempty"`
	// Servers are the servers of providers with their limits, and Batches what is in their batch APIs.
	Servers []Server `json:"servers,omitempty"`
	Batches []Batch  `json:"batches,omitempty"`
	History History  `json:"history"` // of this process; ShowLive keeps it
}

// Model is what one model did for this process: calls, failures, tokens and cost as they are recorded.
type Model struct {
	Name        string                 `json:"name"`
	Calls       int64                  `json:"calls"`
	Failed      int64                  `json:"failed"`
	RateLimited int64                  `json:"rate_limited"`
	Input       int                    `json:"input_tokens"`
	Output      int                    `json:"output_tokens"`
	Cost        llm.Money              `json:"cost_usd"`
	Median      time.Duration          `json:"median_ns"` // time to answer
	P95         time.Duration          `json:"p95_ns"`    // the same: 95% of the answers took no longer
	Errors      map[llm.Kind]LiveError `json:"errors,omitempty"`
}

// Server is a server of a provider and its limits.
type Server struct {
	Provider    string `json:"provider"`
	Address     string `json:"address"`
	Models      string `json:"models,omitempty"` // the pattern of the models that the limits are for; empty: all others
	InFlight    int    `json:"in_flight"`
	Concurrency int    `json:"concurrency"` // calls that may be in flight
	Requests    Rate   `json:"requests"`
	Tokens      Rate   `json:"tokens"` // input and output together
	Input       Rate   `json:"input_tokens"`
	Output      Rate   `json:"output_tokens"`
}

// Rate is what a server was asked for of late, and what it allows. Both are a minute.
type Rate struct {
	Now     float64 `json:"now"`
	Limit   float64 `json:"limit,omitempty"`   // 0: unknown
	Unknown bool    `json:"unknown,omitempty"` // Now is: the server was just opened
}

// Batch is a batch at a provider. Anthropic says how many requests are answered only at the end.
type Batch struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Began    time.Time `json:"began"`
	Requests int       `json:"requests"`
	Answered int       `json:"answered"` // failures included
	Trouble  string    `json:"trouble,omitempty"`
}

// LiveError counts failed attempts of one kind.
type LiveError struct {
	Attempts int64  `json:"attempts"`
	Example  string `json:"example,omitempty"` // hostile
}

// ShowLive writes the live file beside a run file once a second, until end is called, which removes it. The file is for people who watch:
// nothing depends on it, and a run whose folder cannot be written has none.
func ShowLive(run string, state func(now time.Time) LiveState) (end func()) {
	over, path := make(chan struct{}), files.Beside(run, LiveSuffix)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(liveEvery)
		defer tick.Stop()
		var past History
		for now := time.Now(); ; { // the first state is what later rates are measured from
			s := state(now)
			past.add(&s)
			s.History = past
			_ = writeLive(path, s) // the next may succeed: a full disk has room again, and a reader has closed the file
			select {
			case now = <-tick.C:
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
		_ = os.Remove(path) // it may not be there
	}
}

// writeLive replaces the file, so that a reader sees the old text or the new one.
func writeLive(path string, s LiveState) error {
	s.Process = os.Getpid()
	s.shorten()
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return files.Publish(path, 0o600, b)
}

// maxLiveSize bounds what is read: more than a state within the other limits takes.
const maxLiveSize = 8 << 20

// ReadLive reads the state of the process that plays a run. ok is false if there is none.
func ReadLive(ctx context.Context, run string) (s LiveState, ok bool) {
	b, err := files.Read(ctx, files.Beside(run, LiveSuffix), maxLiveSize)
	if err != nil || json.Unmarshal(b, &s) != nil {
		return LiveState{}, false
	}
	s.shorten()
	age := time.Since(s.At)
	return s, s.sane() && age < LiveMaxAge && age > -LiveMaxAge
}

// The limits of a state: the rows of its lists, and the bytes of a text. Worlds, models and providers write some of them.
const (
	maxRows = 100
	maxText = 300
)

// shorten shortens lists and texts.
func (s *LiveState) shorten() {
	shortenText(&s.Left)
	s.Status, s.Waits = slices.Clone(s.Status[:min(len(s.Status), maxRows)]), slices.Clone(s.Waits[:min(len(s.Waits), maxRows)])
	for _, list := range [][]string{s.Status, s.Waits} {
		for i := range list {
			shortenText(&list[i])
		}
	}
	s.Models, s.Servers, s.Batches = s.Models[:min(len(s.Models), maxRows)], s.Servers[:min(len(s.Servers), maxRows)], s.Batches[:min(len(s.Batches), maxRows)]
	for i := range s.Models {
		m := &s.Models[i]
		shortenText(&m.Name)
		for kind, e := range m.Errors {
			if shortenText(&e.Example); len(kind) > maxText {
				delete(m.Errors, kind) // no kind of ours
				continue
			}
			m.Errors[kind] = e
		}
	}
	for i := range s.Servers {
		one := &s.Servers[i]
		shortenText(&one.Provider)
		shortenText(&one.Address)
		shortenText(&one.Models)
	}
	for i := range s.Batches {
		b := &s.Batches[i]
		shortenText(&b.Provider)
		shortenText(&b.Model)
		shortenText(&b.Trouble)
	}
}

// shortenText shortens a text to its limit.
func shortenText(text *string) {
	if len(*text) > maxText {
		*text = strings.ToValidUTF8((*text)[:maxText], "") + "…"
	}
}

// sane reports whether the numbers of a state can be what they say.
func (s *LiveState) sane() bool {
	numbers := []float64{float64(s.InFlight), float64(s.Waiting), float64(s.RateLimited), s.CallsPerSecond, s.TokensPerSecond, s.ErrorsPerSecond, float64(s.History.Every)}
	for _, one := range s.Servers {
		for _, r := range []Rate{one.Requests, one.Tokens, one.Input, one.Output} {
			numbers = append(numbers, r.Now, r.Limit)
		}
	}
	for _, p := range s.History.Points {
		numbers = append(numbers, p[:]...)
	}
	for _, n := range numbers {
		if !(n >= 0 && n < maxNumber) {
			return false
		}
	}
	return len(s.History.Points) <= maxPoints
}

// maxNumber bounds the numbers of a state.
const maxNumber = 1e18

// History is what a process did since it began: a limited number of points at equal intervals.
type History struct {
	Every  time.Duration `json:"every_ns"` // the interval
	Points []Point       `json:"points"`

	sum   Point // of the states since the last point
	n     int   // how many these are
	ticks int   // how many make a point
}

// Point is means over an interval. It is written as a list: the file is written once a second.
type Point [5]float64

// The numbers of a Point.
const (
	PointInFlight = iota // calls
	PointCalls           // a second
	PointTokens          // a second
	PointErrors          // failed attempts a second
	PointSpent           // dollars in all
)

// maxPoints is how many points there are at most. Then each two become one.
const maxPoints = 300

// add adds a state. There is one every second.
func (h *History) add(s *LiveState) {
	p := Point{PointInFlight: float64(s.InFlight), PointCalls: s.CallsPerSecond, PointTokens: s.TokensPerSecond, PointErrors: s.ErrorsPerSecond, PointSpent: s.Spent.Dollars()}
	h.sum = h.sum.plus(p)
	h.ticks = max(1, h.ticks)
	if h.n++; h.n < h.ticks {
		return
	}
	h.Points = append(h.Points, h.sum.over(h.n))
	h.sum, h.n = Point{}, 0
	if len(h.Points) == maxPoints {
		half := make([]Point, maxPoints/2, maxPoints) // what was written before stays as it is
		for i := range half {
			half[i] = h.Points[2*i].plus(h.Points[2*i+1]).over(2)
		}
		h.Points, h.ticks = half, 2*h.ticks
	}
	h.Every = time.Duration(h.ticks) * liveEvery
}

func (p Point) plus(q Point) Point {
	for i := range p {
		p[i] += q[i]
	}
	return p
}

// over returns the mean of n points, rounded: the file should be short.
func (p Point) over(n int) Point {
	for i := range p {
		p[i] = math.Round(p[i]/float64(n)*precision) / precision
	}
	return p
}

// precision is how finely points are rounded.
const precision = 1e4
