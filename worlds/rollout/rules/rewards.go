package rules

import "slices"

// Row is one answer of an agent and its reward: a row of training data. The journal has the prompt and the
// answer.
type Row struct {
	// Ask is the number of the ask in the attempt, from 0, in the order of turns and calls.
	Ask  int    `json:"ask"`
	Step int    `json:"step"` // from 1
	Seat string `json:"seat"`
	// StepReward is the reward of the answer, and Reward the sum of its seat up to then.
	StepReward float64 `json:"step_reward"`
	Reward     float64 `json:"reward"`
	Terminal   bool    `json:"is_terminal,omitempty"`
	Truncated  bool    `json:"is_truncated,omitempty"`
	// Completed marks the last row of a seat in an episode that ended.
	Completed bool `json:"is_session_completed,omitempty"`
	Trainable bool `json:"is_trainable,omitempty"`
	// Unpaid means that the episode ended before a reward for this answer.
	Unpaid bool `json:"unpaid,omitempty"`
	// Weights is the version of the weights that answered, if the server reported it.
	Weights string `json:"weight_version,omitempty"`
}

// rewards assigns rewards to answers: a reward is for the oldest answer of its seat without one.
type rewards struct {
	rows      []*Row // in the order of the asks
	waiting   map[string][]*Row
	total     map[string]float64
	paid      map[string]bool
	unmatched int
}

func newRewards(seats []string) *rewards {
	l := &rewards{waiting: map[string][]*Row{}, total: map[string]float64{}, paid: map[string]bool{}}
	for _, seat := range seats {
		l.total[seat] = 0
	}
	return l
}

// answered adds an answer. One that was cut off ends the episode and gets no reward.
func (l *rewards) answered(r Row, cutOff bool) {
	row := &r
	l.rows = append(l.rows, row)
	if cutOff {
		row.Reward, row.Terminal, row.Truncated = l.total[r.Seat], true, true
		return
	}
	row.Unpaid = true
	l.waiting[r.Seat] = append(l.waiting[r.Seat], row)
}

// pay assigns the rewards of a step, by seat.
func (l *rewards) pay(rewards map[string]float64, terminated, truncated bool) {
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

// known reports whether a seat acted or got a reward. Otherwise its reward is unknown.
func (l *rewards) known(seat string) bool {
	return l.paid[seat] || slices.ContainsFunc(l.rows, func(r *Row) bool { return r.Seat == seat })
}

// close completes the rows. If prompts are cut, every row is trainable, since none contains those before;
// otherwise the last rows are.
func (l *rewards) close(stop Stop, every bool, trains map[string]bool) []Row {
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
