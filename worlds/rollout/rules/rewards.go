package rules

import "slices"

// Row is one answer of an agent and what it came to: a row of training data. The prompt
// and the answer themselves stand in the journal.
type Row struct {
	// Ask is which ask of the attempt it is, from 0, counted in the order of turns and of
	// calls within them.
	Ask  int    `json:"ask"`
	Step int    `json:"step"` // from 1
	Seat string `json:"seat"`
	// StepReward is what the answer was paid, and Reward what its seat had been paid by then.
	StepReward float64 `json:"step_reward"`
	Reward     float64 `json:"reward"`
	Terminal   bool    `json:"is_terminal,omitempty"`
	Truncated  bool    `json:"is_truncated,omitempty"`
	// Completed marks the last row of a seat in an episode that ended.
	Completed bool `json:"is_session_completed,omitempty"`
	Trainable bool `json:"is_trainable,omitempty"`
	// Unpaid means that no reward came for this answer before the episode ended.
	Unpaid bool `json:"unpaid,omitempty"`
	// Weights is the version of the weights that answered, where the server gave it.
	Weights string `json:"weight_version,omitempty"`
}

// ledger gives rewards to answers: a reward is for the oldest answer of its seat that has
// none yet.
type ledger struct {
	rows      []*Row // in the order of asking
	waiting   map[string][]*Row
	total     map[string]float64
	paid      map[string]bool
	unmatched int
}

func newLedger(seats []string) *ledger {
	l := &ledger{waiting: map[string][]*Row{}, total: map[string]float64{}, paid: map[string]bool{}}
	for _, seat := range seats {
		l.total[seat] = 0
	}
	return l
}

// did takes in an answer. One that was cut off gets no reward: it ends the episode.
func (l *ledger) did(r Row, cutOff bool) {
	row := &r
	l.rows = append(l.rows, row)
	if cutOff {
		row.Reward, row.Terminal, row.Truncated = l.total[r.Seat], true, true
		return
	}
	row.Unpaid = true
	l.waiting[r.Seat] = append(l.waiting[r.Seat], row)
}

// pay gives the rewards of a step, by seat.
func (l *ledger) pay(rewards map[string]float64, terminated, truncated bool) {
	for seat, reward := range rewards {
		l.total[seat] += reward
		l.paid[seat] = true
		waiting := l.waiting[seat]
		if len(waiting) == 0 {
			if reward != 0 {
				l.unmatched++
			}
			continue
		}
		row := waiting[0]
		l.waiting[seat] = waiting[1:]
		row.StepReward, row.Reward, row.Unpaid = reward, l.total[seat], false
		row.Terminal, row.Truncated = terminated, truncated
	}
}

// known says whether a seat ever did anything or was paid: of one that was left out, the reward is
// not known.
func (l *ledger) known(seat string) bool {
	return l.paid[seat] || slices.ContainsFunc(l.rows, func(r *Row) bool { return r.Seat == seat })
}

// close completes the rows: the last of each seat is the seat's end. Every row is trainable
// where prompts are cut, since then none holds those before; otherwise the last ones are.
func (l *ledger) close(stop Stop, every bool, trains map[string]bool) []Row {
	last := map[string]*Row{}
	for _, r := range l.rows {
		if r.Unpaid {
			r.Reward = l.total[r.Seat]
		}
		last[r.Seat] = r
	}
	out := make([]Row, 0, len(l.rows))
	for _, r := range l.rows {
		final := stop != StopFailed && last[r.Seat] == r
		if final && (stop == StopMaxSteps || stop == StopTooLong) {
			r.Truncated = true
		}
		r.Completed = stop != StopFailed && (final || r.Terminal || r.Truncated)
		r.Trainable = stop != StopFailed && trains[r.Seat] && (every || r.Completed)
		out = append(out, *r)
	}
	return out
}
