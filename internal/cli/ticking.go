package cli

import (
	"io"
	"strings"
	"sync"
	"time"

	"parley/internal/dispatch"
	"parley/llm"
)

// How often the progress is shown: in a terminal, and as plain lines.
const (
	refreshEvery = 200 * time.Millisecond
	lineEvery    = 10 * time.Second
)

// ticking shows what line says of each moment, in parts of which the first matter most:
// over and over in the last row of a terminal, as many as fit; now and then as a line of
// its own elsewhere. The caller must call end, which waits.
func ticking(out *stream, line func(now time.Time) []string) (end func()) {
	every := lineEvery
	if out.escapes {
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
				if out.escapes {
					out.refresh(line(time.Now()))
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
		out.clear()
	}
}

// reasons says what calls wait for. waits may be nil.
func reasons(waits func(time.Time) []string, now time.Time) (parts []string) {
	if waits == nil {
		return nil
	}
	for _, why := range waits(now) {
		parts = append(parts, quoted(why))
	}
	return parts
}

// cost writes what was spent, and says so where that is not all, or not known at all.
func cost(c, budget llm.Money, s dispatch.Snapshot) string {
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

// unpricedNote says, on a line of its own, which models have no known price.
func unpricedNote(models []string) string {
	if len(models) == 0 {
		return ""
	}
	return "\nno price is known for " + strings.Join(models, ", ") + ": what they cost is not counted; a file of prices can say"
}
