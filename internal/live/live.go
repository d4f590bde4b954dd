// Package live has the file in which a process that plays a run says, once a second, what it is
// doing: calls in flight, speed, what it waits for. None of it is in the run file.
//
// The file stands beside the run file and is gone when the process ends. It is for people who
// watch: nothing depends on it, and a run whose folder cannot be written has none.
package live

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"parley/internal/filelock"
	"parley/internal/files"
	"parley/llm"
)

// Suffix is added to the name of a run file to name its live file.
const Suffix = "-live"

// How often the file is written, and MaxAge, when it is too old: its process was killed.
const (
	every  = time.Second
	MaxAge = 5 * time.Second
)

// State is what a process is doing.
type State struct {
	At      time.Time `json:"at"`
	Process int       `json:"process"` // its id

	// Steered says that the run is paused or draining, by whom and since when, such as "paused by ctl
	// at 10:31". Empty: it is played as usual. It may be hostile.
	Steered         string    `json:"steered,omitempty"`
	InFlight        int64     `json:"in_flight"` // calls
	Waiting         int64     `json:"waiting"`   // for a provider's limits
	CallsPerSecond  float64   `json:"calls_per_second"`
	TokensPerSecond float64   `json:"tokens_per_second"`
	RateLimited     int64     `json:"rate_limited"` // attempts of this process that were refused for a limit
	Spent           llm.Money `json:"spent_usd"`
	Budget          llm.Money `json:"budget_usd,omitempty"`
	// Left is the estimated time until the run is complete, such as "2m to 5m left"; empty: unknown.
	Left string `json:"left,omitempty"`
	// Status is the kind's own status, and Waits is what calls wait for. Both may be hostile.
	Status []string `json:"status,omitempty"`
	Waits  []string `json:"waits,omitempty"`
	Models []Model  `json:"models,omitempty"`
}

// Model is what one model did for this process.
type Model struct {
	Name        string             `json:"name"`
	Calls       int64              `json:"calls"`
	Failed      int64              `json:"failed"`
	RateLimited int64              `json:"rate_limited"`
	Median      time.Duration      `json:"median_ns"` // time to answer
	Errors      map[llm.Kind]Error `json:"errors,omitempty"`
}

// Error counts failed attempts of one kind.
type Error struct {
	Attempts int64  `json:"attempts"`
	Example  string `json:"example,omitempty"` // hostile
}

// Show writes the file of a run once a second, until end is called, which removes it.
func Show(run string, state func(now time.Time) State) (end func()) {
	over, path := make(chan struct{}), filelock.Beside(run, Suffix)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				if write(path, state(now)) != nil {
					return // the folder cannot be written
				}
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

// write replaces the file, so that a reader sees the old text or the new one.
func write(path string, s State) error {
	s.Process = os.Getpid()
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return files.Publish(path, 0o600, b)
}

// maxSize bounds what is read.
const maxSize = 1 << 20

// Read reads the state of the process that plays a run. ok is false if there is none.
func Read(ctx context.Context, run string) (s State, ok bool) {
	b, err := files.Read(ctx, filelock.Beside(run, Suffix), maxSize)
	if err != nil || json.Unmarshal(b, &s) != nil {
		return State{}, false
	}
	age := time.Since(s.At)
	sane := s.InFlight >= 0 && s.Waiting >= 0 && s.RateLimited >= 0 && s.CallsPerSecond >= 0 && s.TokensPerSecond >= 0 && s.TokensPerSecond < 1e12 && s.CallsPerSecond < 1e12
	return s, sane && age < MaxAge && age > -MaxAge
}
