package training

import (
	"encoding/json"
	"fmt"
	"regexp"

	"parley/journal"
	"parley/worlds/rollout/rules"
)

// This file reads the record of a gateway, whose episodes are the sessions of other programs. Nobody played them, so
// what the outcome of a rollout says about its answers is made from the calls and the closing score.

// gatewayKind is the kind of a gateway's record.
const gatewayKind = "gateway"

// numbered is a session's name with a number at its end, such as task7-2.
var numbered = regexp.MustCompile(`^(.+)-[0-9]+$`)

// sessions makes one stage of all sessions. Sessions are one group if their names differ only in the number at the end.
func sessions(stages []journal.Staged) (stage, error) {
	s := stage{shared: map[string][]int{}, sessions: true}
	for _, st := range stages {
		for i, spec := range st.Specs.All() {
			var p struct{ Session string }
			if err := json.Unmarshal(spec.Params, &p); err != nil {
				return s, fmt.Errorf("trajectory: episode %d: params: %w", st.First+i, err)
			}
			name := p.Session
			if m := numbered.FindStringSubmatch(name); m != nil {
				name = m[1]
			}
			if s.shared[name] == nil {
				s.names = append(s.names, name)
			}
			s.shared[name] = append(s.shared[name], st.First+i)
		}
	}
	return s, nil
}

// session sets what a rollout's outcome would say: every answer, and the closing score "reward" for the last one. Without
// that score, nothing is trainable.
func (t *Trajectory) session(ended *journal.Ended, entries []journal.Entry) {
	var end struct{ Truncated bool }
	if raw, ok := ended.Outcome.Data.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &end) // otherwise it was not cut off
	}
	t.Data = rules.Data{Env: gatewayKind, Stop: rules.StopTerminated}
	switch {
	case t.Failed != "":
		t.Data.Stop = rules.StopFailed
	case end.Truncated:
		t.Data.Stop = rules.StopTruncated
	}
	t.Status = statusOf(ended.Outcome, t.Data)
	reward, paid := t.Return[""]
	delete(t.Return, "")
	for i, ask := range Asks(entries, t.Attempt) {
		if ask.Response != nil {
			t.Data.Rows = append(t.Data.Rows, rules.Row{Ask: i, Step: len(t.Data.Rows) + 1, Seat: ask.Seat, Weights: ask.Response.WeightVersion, NoReward: !paid})
		}
	}
	t.Data.Steps = len(t.Data.Rows)
	if t.Data.Steps == 0 {
		return
	}
	last := &t.Data.Rows[t.Data.Steps-1]
	last.StepReward, last.Reward, last.Terminal, last.Truncated, last.Completed = reward, reward, true, end.Truncated, true
	last.Trainable = paid && t.Failed == ""
	if paid {
		t.Return[last.Seat] = reward
	}
}
