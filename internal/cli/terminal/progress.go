package terminal

import (
	"io"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// How often the progress is shown: on a terminal, to another program that shows it, and as plain lines.
const (
	refreshEvery = 200 * time.Millisecond
	relayEvery   = time.Second
	lineEvery    = 10 * time.Second
)

// ShowProgress shows the parts that line returns, the most important first. On a terminal it updates the last row with
// as many parts as fit. Elsewhere it prints a line now and then. The caller must call end, which waits for the
// goroutine.
func ShowProgress(out *Stream, line func(now time.Time) []string) (end func()) {
	every := lineEvery
	switch {
	case out.Escapes:
		every = refreshEvery
	case out.Often:
		every = relayEvery
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
				// A progress line that cannot be written must not fail the run.
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

// Reasons returns what calls wait for: trouble, which belongs at the front of a line, and that they wait for room in the budget, in short: "21
// wait: the budget has room for 3 calls at a time (max_tokens: 8000 sets aside $0.80 for each)". waits may be nil.
func Reasons(waits func(time.Time) []dispatch.Wait, now time.Time) (trouble, money []string) {
	if waits == nil {
		return nil, nil
	}
	var calls, several, room int
	var why string
	var low, high llm.Money
	for _, w := range waits(now) {
		m := w.Money
		if m == nil {
			trouble = append(trouble, Quoted(w.Text()))
			continue
		}
		amount := twoDigits(m.Amount)
		if calls == 0 {
			low = amount
		}
		calls, low, high = llm.AddTokens(calls, m.Calls), min(low, amount), max(high, amount)
		several, room, why = several+1, m.Room, Quoted(m.Why)
	}
	if calls == 0 {
		return trouble, nil
	}
	each := high.String()
	if low < high {
		each = low.String() + " to " + each
	}
	what := " for room in the budget"
	if several == 1 && room > 0 {
		what = ": the budget has room for " + Several(room, "call", "calls") + " at a time"
	}
	aside := each + " set aside for each"
	if several == 1 && why != "" {
		aside = why + " sets aside " + each + " for each"
	}
	return trouble, []string{Several(calls, "waits", "wait") + what + " (" + aside + ")"}
}

// twoDigits returns m with two digits, or in cents.
func twoDigits(m llm.Money) llm.Money {
	unit := llm.Money(1)
	for unit < llm.Dollar/100 && 100*unit <= m {
		unit *= 10
	}
	return m.Plus(unit/2) / unit * unit
}

// Waits returns in full what calls wait for. waits may be nil.
func Waits(waits func(time.Time) []dispatch.Wait, now time.Time) (texts []string) {
	if waits == nil {
		return nil
	}
	for _, text := range dispatch.WaitTexts(waits(now)) {
		texts = append(texts, Quoted(text))
	}
	return texts
}

// Queue says how many calls wait, and how many were refused because of the quota.
func Queue(s dispatch.Snapshot) (parts []string) {
	if s.Waiting > 0 {
		parts = append(parts, Number(int(s.Waiting))+" waiting")
	}
	if s.RateLimited > 0 {
		parts = append(parts, Number(int(s.RateLimited))+" rate-limited")
	}
	return parts
}

// MoneyText formats sums, and says if some or all of what was spent is not known.
func MoneyText(sums budget.Sums, s dispatch.Snapshot) string {
	text := sums.Text()
	switch {
	case s.Unpriced == 0:
		return text
	case s.Unpriced == s.Attempts && sums.Spent == 0:
		return "unpriced"
	default:
		return text + " and what is unpriced"
	}
}

// UnpricedNote returns a line that names the models without a known price.
func UnpricedNote(models []string) string {
	if len(models) == 0 {
		return ""
	}
	return "no price is known for " + strings.Join(models, ", ") + ": their cost is not counted. Give their prices in a price file: --prices FILE, or the key prices of a plan"
}
