package simhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"parley/internal/ask/sim"
	"parley/llm"
)

// rateHeaders adds the headers that say how much of the limits is left. A reset is a duration in
// OpenAI's headers, and a time in Anthropic's.
func (s *Server) rateHeaders(h http.Header, style sim.Style, now time.Time) {
	rate := s.accounts[style].quota.Rate(now)
	if rate == nil || s.cfg.NoLimitHeaders || style == sim.Google || style == sim.Amazon { // these have no such headers
		return
	}
	if style == sim.OpenAI {
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
	h["X-Ratelimit-Reset-"+name] = []string{duration(w.Reset)}
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
