// Package progress shows how work goes while it goes on, and estimates how long it still takes.
//
// Show waits for its goroutine when it ends. TimeLeft reads no clock.
//
// It is not for what a line says: the callers build it.
package progress

import (
	"io"
	"strings"
	"sync"
	"time"

	"parley/internal/cli/terminal"
	"parley/internal/dispatch"
	"parley/llm"
)

// How often the progress is shown: in a terminal, and as plain lines.
const (
	refreshEvery = 200 * time.Millisecond
	lineEvery    = 10 * time.Second
)

// Show shows what line says of each moment, in parts of which the first matter most:
// over and over in the last row of a terminal, as many as fit; now and then as a line of
// its own elsewhere. The caller must call end, which waits.
func Show(out *terminal.Stream, line func(now time.Time) []string) (end func()) {
	every := lineEvery
	if out.Escapes {
		every = refreshEvery
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if out.Escapes {
					out.Refresh(line(time.Now()))
					continue
				}
				// A progress line that cannot be written is no reason to fail.
				_, _ = io.WriteString(out, strings.Join(line(time.Now()), ", ")+"\n")
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
		out.Clear()
	}
}

// Reasons says what calls wait for. waits may be nil.
func Reasons(waits func(time.Time) []string, now time.Time) (parts []string) {
	if waits == nil {
		return nil
	}
	for _, why := range waits(now) {
		parts = append(parts, terminal.Quoted(why))
	}
	return parts
}

// Cost writes what was spent, and says so where that is not all, or not known at all.
func Cost(c, budget llm.Money, s dispatch.Snapshot) string {
	text := c.String()
	if budget > 0 {
		text += " of " + budget.String()
	}
	switch {
	case s.Unpriced == 0:
		return text
	case s.Unpriced == s.Attempts && c == 0:
		return "unpriced"
	default:
		return text + " and what is unpriced"
	}
}

// UnpricedNote says, on a line of its own, which models have no known price.
func UnpricedNote(models []string) string {
	if len(models) == 0 {
		return ""
	}
	return "\nno price is known for " + strings.Join(models, ", ") + ": what they cost is not counted; a file of prices can say"
}
