package simhttp

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/llm"
)

// writeError sends an error in a vendor's form.
func (s *Server) writeError(w http.ResponseWriter, style quota.Style, e *check.Error, id string) {
	s.stats.failure(e.Status)
	h := w.Header()
	if r := e.Refusal; r != nil && r.After > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.After.Seconds()))))
		if style == quota.OpenAI {
			h.Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(float64(r.After)/float64(time.Millisecond)))))
		}
	}
	writeBody(w, e.Status, "application/json", appendError(nil, style, e, id))
}

// tooMany puts a refusal into a vendor's words.
func tooMany(style quota.Style, r *quota.Refusal) *check.Error {
	e := &check.Error{Status: http.StatusTooManyRequests, Refusal: r}
	if style == quota.Anthropic {
		e.Type = "rate_limit_error"
		e.Message = fmt.Sprintf("This request would exceed your organization's rate limit of %.0f %s per minute.", r.Limit, r.What)
		if r.What == "concurrency" {
			e.Message = "Number of concurrent connections has exceeded your rate limit. Please try again later."
		}
		return e
	}
	e.Type, e.Code = r.What, "rate_limit_exceeded"
	unit := map[string]string{"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}[r.What]
	switch {
	case r.What == "concurrency":
		e.Type, e.Message = "requests", fmt.Sprintf("Too many concurrent requests. Limit: %.0f.", r.Limit)
	case r.TooLarge:
		e.Message = fmt.Sprintf("Request too large on %s: Limit %.0f, Requested %.0f. The input or output tokens must be reduced in order to run successfully.", unit, r.Limit, r.Asked)
	default:
		e.Message = fmt.Sprintf("Rate limit reached on %s: Limit %.0f, Used %.0f, Requested %.0f. Please try again in %s.", unit, r.Limit, r.Used, r.Asked, resetText(r.After))
	}
	return e
}

// rateHeaders tells how much of the limits is left. OpenAI's are durations until a
// limit is whole again, Anthropic's are the times of that.
func (s *Server) rateHeaders(h http.Header, style quota.Style, now time.Time) {
	rate := s.accounts[style].quota.Rate(now)
	if rate == nil {
		return
	}
	if style == quota.OpenAI {
		openaiWindow(h, "Requests", rate.Requests)
		openaiWindow(h, "Tokens", rate.Tokens)
		return
	}
	anthropicWindow(h, "Requests", rate.Requests, now, 1)
	anthropicWindow(h, "Tokens", rate.Tokens, now, 1000)
	anthropicWindow(h, "Input-Tokens", rate.Input, now, 1000)
	anthropicWindow(h, "Output-Tokens", rate.Output, now, 1000)
}

func openaiWindow(h http.Header, name string, w llm.Window) {
	if !w.Known {
		return
	}
	h["X-Ratelimit-Limit-"+name] = []string{strconv.FormatFloat(w.Limit, 'f', 0, 64)}
	h["X-Ratelimit-Remaining-"+name] = []string{strconv.FormatFloat(w.Remaining, 'f', 0, 64)}
	h["X-Ratelimit-Reset-"+name] = []string{resetText(w.Reset)}
}

func anthropicWindow(h http.Header, name string, w llm.Window, now time.Time, round float64) {
	if !w.Known {
		return
	}
	prefix := "Anthropic-Ratelimit-" + name
	h[prefix+"-Limit"] = []string{strconv.FormatFloat(w.Limit, 'f', 0, 64)}
	h[prefix+"-Remaining"] = []string{strconv.FormatFloat(math.Round(w.Remaining/round)*round, 'f', 0, 64)}
	h[prefix+"-Reset"] = []string{now.Add(w.Reset).UTC().Format(time.RFC3339)}
}

// resetText writes a duration as OpenAI does: 120ms, 1.5s, 6m0s.
func resetText(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(int64(math.Ceil(float64(d)/float64(time.Millisecond))), 10) + "ms"
	}
	return d.Round(time.Millisecond).String()
}
