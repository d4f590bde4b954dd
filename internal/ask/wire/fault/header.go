package fault

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

const (
	maxRetryAfter = 10 * time.Minute
	maxReset      = 24 * time.Hour
)

// RetryAfter returns how long the server asks us to wait: retry-after-ms, or Retry-After in seconds
// or as a date. A date counts from the server's own Date, if it has one. The result is 0 if there is
// no sensible value, and at most ten minutes.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		if d := capped(seconds(ms / 1000)); d > 0 {
			return d
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if t, err := http.ParseTime(v); err == nil {
		return capped(t.Sub(serverNow(h, now)))
	}
	return capped(parseWait(v))
}

func capped(d time.Duration) time.Duration { return min(max(d, 0), maxRetryAfter) }

// Rate returns the limits in a server's headers, or nil.
func Rate(h http.Header) *llm.Rate {
	var r llm.Rate
	if _, ok := h["Anthropic-Ratelimit-Requests-Limit"]; ok || h["Anthropic-Ratelimit-Tokens-Limit"] != nil || h["Anthropic-Ratelimit-Input-Tokens-Limit"] != nil {
		now := serverNow(h, time.Now())
		r.Requests = anthropicWindow(h, "Requests", now)
		r.Tokens = anthropicWindow(h, "Tokens", now)
		r.Input = anthropicWindow(h, "Input-Tokens", now)
		r.Output = anthropicWindow(h, "Output-Tokens", now)
	} else {
		const limit, left, reset = "X-Ratelimit-Limit-", "X-Ratelimit-Remaining-", "X-Ratelimit-Reset-" // joined by the compiler
		r.Requests = tighter(openAIWindow(h, limit+"Requests", left+"Requests", reset+"Requests"),
			openAIWindow(h, limit+"Project-Requests", left+"Project-Requests", reset+"Project-Requests"))
		r.Tokens = tighter(openAIWindow(h, limit+"Tokens", left+"Tokens", reset+"Tokens"),
			openAIWindow(h, limit+"Project-Tokens", left+"Project-Tokens", reset+"Project-Tokens"))
		if !r.Requests.Known {
			r.Requests = bareWindow(h, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
		}
		if !r.Tokens.Known {
			r.Tokens = bareWindow(h, "X-Tokenlimit-Limit", "X-Tokenlimit-Remaining", "X-Tokenlimit-Reset")
		}
	}
	if r == (llm.Rate{}) {
		return nil
	}
	return &r
}

// anthropicWindow reads one of Anthropic's limits, whose reset is a time. It is compared with the
// server's clock, since ours may be wrong.
func anthropicWindow(h http.Header, what string, now time.Time) llm.Window {
	p := "Anthropic-Ratelimit-" + what + "-"
	w, ok := window(first(h, p+"Limit"), first(h, p+"Remaining"))
	if !ok {
		return llm.Window{}
	}
	if t, err := time.Parse(time.RFC3339, first(h, p+"Reset")); err == nil {
		w.Reset = min(max(t.Sub(now), 0), maxReset)
	}
	return w
}

// openAIWindow reads one of OpenAI's limits, whose reset is a duration.
func openAIWindow(h http.Header, limit, left, reset string) llm.Window {
	w, ok := window(first(h, limit), first(h, left))
	if !ok {
		return llm.Window{}
	}
	w.Reset = min(max(parseWait(first(h, reset)), 0), maxReset)
	return w
}

// bareWindow reads a limit whose header does not say what it counts: Together's limit per second,
// and OpenRouter's, whose reset is a time in milliseconds.
func bareWindow(h http.Header, limit, left, resets string) llm.Window {
	w, ok := window(first(h, limit), first(h, left))
	if !ok {
		return llm.Window{}
	}
	reset := first(h, resets)
	n, err := strconv.ParseFloat(reset, 64)
	switch {
	case err == nil && n > 1e11:
		w.Reset = time.UnixMilli(int64(min(n, 1e15))).Sub(serverNow(h, time.Now()))
	case err == nil && n > 1e8:
		w.Reset = time.Unix(int64(n), 0).Sub(serverNow(h, time.Now()))
	default:
		w.Reset = parseWait(reset)
	}
	if w.Reset = min(max(w.Reset, 0), maxReset); reset == "" {
		w.Reset = time.Second
	}
	return w
}

// window returns a Window with a limit and what remains of it, if both are sensible.
func window(limit, remaining string) (llm.Window, bool) {
	if limit == "" || remaining == "" { // the usual case
		return llm.Window{}, false
	}
	l, err := strconv.ParseFloat(limit, 64)
	if err != nil || !(l > 0) || math.IsInf(l, 0) {
		return llm.Window{}, false
	}
	r, err := strconv.ParseFloat(remaining, 64)
	if err != nil || math.IsNaN(r) {
		return llm.Window{}, false
	}
	return llm.Window{Limit: l, Remaining: min(max(r, 0), l), Known: true}, true
}

// tighter returns the known window with less left.
func tighter(a, b llm.Window) llm.Window {
	if !a.Known || b.Known && b.Remaining < a.Remaining {
		return b
	}
	return a
}

// first is Header.Get for a canonical key.
func first(h http.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

// serverNow returns the server's Date, or now.
func serverNow(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// parseWait parses a number of seconds, or a duration such as 1m2.5s.
func parseWait(s string) time.Duration {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return seconds(n)
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.ParseFloat(n, 64); err == nil {
			return seconds(days * 86400)
		}
	}
	return 0
}

// seconds returns n seconds, or 0 if n is not a sensible number.
func seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n, 1e8) * float64(time.Second))
}
