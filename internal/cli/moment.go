package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/cli/terminal"
	"parley/internal/serve/telemetry"
	"parley/journal"
	"parley/llm"
)

// moment is how far an episode has come.
type moment struct {
	since time.Time
	turn  int
	label string // of its last call
	cost  llm.Money
	where string // what its world noted last, such as "phase S1902M"; hostile
}

// maxInside is how many episodes may play so that the progress shows what is inside them.
const maxInside = 3

// moment returns the moment of an episode that is played.
func (v *runView) moment(episode int) *moment {
	m := v.playing[episode]
	if m == nil {
		m = &moment{since: time.Now()}
		v.playing[episode] = m
	}
	return m
}

func (m *moment) replied(r *journal.Replied) {
	m.turn, m.label, m.cost = max(m.turn, r.Turn.Turn), r.Label, m.cost.Plus(r.Cost())
}

// places are what worlds call the places in an episode, in their notes.
func places() []string { return []string{"phase", "turn", "round", "year", "step"} }

// noted keeps where a world says that it is.
func (m *moment) noted(t *journal.Turned) {
	for _, note := range slices.Backward(t.Notes) {
		var data map[string]json.RawMessage
		if json.Unmarshal(note.Data, &data) != nil {
			continue
		}
		for _, name := range places() {
			if value := strings.Trim(string(data[name]), `"`); value != "" && len(value) <= 40 && !strings.ContainsAny(value, "{[") {
				m.where = name + " " + value
				return
			}
		}
	}
}

// inside says how far the episodes are that play, if these are few.
func (v *runView) inside() (parts []string) {
	if len(v.playing) > maxInside {
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(v.playing)) {
		m := v.playing[n]
		where := m.where
		if where == "" {
			where = fmt.Sprintf("turn %d", m.turn+1)
		}
		text := fmt.Sprintf("episode %d: %s", n, where)
		if m.label != "" {
			text += ", " + m.label
		}
		parts = append(parts, terminal.Cut(terminal.Safe(terminal.OneLine(text)), 80))
	}
	return parts
}

// maxScores is how many scores the line of an episode has.
const maxScores = 6

// done forgets an episode that ended, and prints its line.
func (v *runView) done(e *journal.Ended) {
	m := v.moment(e.Episode)
	delete(v.playing, e.Episode)
	v.ends.add(m.cost, v.resumed[e.Episode])
	if !v.Verbose {
		return
	}
	mark, parts := "✓ done", []string{}
	for i, s := range e.Outcome.Scores {
		if i == maxScores {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %.4g", strings.TrimSpace(s.Seat+" "+s.Name), s.Value))
	}
	if e.Outcome.Failed != "" {
		mark, parts = "✗ failed", []string{e.Outcome.Failed}
	}
	text := fmt.Sprintf("%s: episode %d: %s; %v, %v", mark, e.Episode, strings.Join(parts, ", "), m.cost, time.Since(m.since).Round(100*time.Millisecond))
	fmt.Fprintln(v.Out, terminal.Cut(terminal.Safe(terminal.OneLine(text)), 400))
}

// Monitor returns the state of the run for Prometheus.
func (v *runView) Monitor() telemetry.MonitorRun {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := telemetry.MonitorRun{Episodes: map[string]int{
		"ended": v.ended - v.lost, "failed": v.lost, "playing": len(v.playing), "waiting": max(0, v.episodes-v.ended-len(v.playing)),
	}}
	if v.steering != nil {
		s := v.steering.State()
		r.Paused, r.Draining = s.Paused != nil, s.Draining != nil
	}
	return r
}
