package results

import (
	"slices"
	"strings"
	"time"

	"parley/journal"
	"parley/llm"
)

// Prompt is what is new in a request since the last one of the same seat.
type Prompt struct {
	Fresh       []llm.Message
	Same, Lines int // messages, and lines of the first of Fresh, that are left out
}

// ByTime puts lines in the order of time, if they are of several strands, and returns the time of the first reply. The
// lines of a turn stay together. A turn without replies follows what comes before it in lines.
func ByTime(lines []Line) (began time.Time) {
	strands := false
	when := map[string]time.Time{} // by turn
	for _, l := range lines {
		strands = strands || strings.Contains(l.Turn, "/")
		if l.Reply != nil && !l.Reply.At.IsZero() && when[l.Turn].IsZero() {
			when[l.Turn] = l.Reply.At
			if began.IsZero() || l.Reply.At.Before(began) {
				began = l.Reply.At
			}
		}
	}
	if !strands {
		return began
	}
	var last time.Time
	for _, l := range lines {
		if when[l.Turn].IsZero() {
			when[l.Turn] = last
		}
		if when[l.Turn].After(last) {
			last = when[l.Turn]
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return when[a.Turn].Compare(when[b.Turn]) })
	return began
}

// Prompts returns what is new in the requests of a window.
func Prompts(all, window []Line, fill func(...*journal.Replied) error) (map[string]Prompt, error) {
	type seat struct{ name, label string }
	before, last := map[*journal.Replied]*journal.Replied{}, map[seat]*journal.Replied{}
	for _, l := range all {
		if l.Reply != nil && l.Reply.Request != nil {
			at := seat{l.Reply.Seat, l.Reply.Label}
			if last[at] != l.Reply {
				before[l.Reply], last[at] = last[at], l.Reply
			}
		}
	}
	wanted := map[*journal.Replied]bool{}
	var read []*journal.Replied
	for _, l := range window {
		for _, r := range []*journal.Replied{l.Reply, before[l.Reply]} {
			if r != nil && r.Request != nil && !wanted[r] {
				wanted[r], read = true, append(read, r)
			}
		}
	}
	if err := fill(read...); err != nil {
		return nil, err
	}
	out := map[string]Prompt{}
	for _, l := range window {
		if l.Reply == nil || l.Reply.Request == nil {
			continue
		}
		var p Prompt
		var earlier *llm.Request
		if b := before[l.Reply]; b != nil {
			earlier = b.Request
		}
		p.Fresh, p.Same, p.Lines = Since(earlier, l.Reply.Request)
		out[l.Call] = p
	}
	return out, nil
}
