package rules

import (
	"slices"

	"parley/world/part"
)

// Row is one answer of an agent and its reward. The journal has the prompt and the answer.
type Row = part.Answer

// rewardLedger keeps the answers of an episode and assigns rewards to them. During the episode, a reward is for the oldest answer of
// its seat without one; at the end, for the last answer. Every answer is in exactly one row.
type rewardLedger struct {
	// total is what each seat was paid.
	total map[string]float64
	// unmatched counts rewards for seats that had not acted.
	unmatched int

	rows    []*Row // in the order of the asks
	waiting map[string][]*Row
	paid    map[string]bool

	terminated, truncated bool // the environment, in its last step
}

// newLedger returns the ledger of an episode with these seats.
func newLedger(seats []string) *rewardLedger {
	l := &rewardLedger{waiting: map[string][]*Row{}, total: map[string]float64{}, paid: map[string]bool{}}
	for _, seat := range seats {
		l.total[seat] = 0
	}
	return l
}

// empty reports whether nobody has answered.
func (l *rewardLedger) empty() bool { return len(l.rows) == 0 }

// versions returns the oldest and the newest version of the weights that answered for these seats. A version that is not
// a number does not count; without any, both are 0.
func (l *rewardLedger) versions(seats map[string]bool) (oldest, newest int) {
	found := false
	for _, r := range l.rows {
		v, ok := part.WeightNumber(r.Weights)
		if !ok || !seats[r.Seat] {
			continue
		}
		if !found {
			oldest, newest, found = v, v, true
		}
		oldest, newest = min(oldest, v), max(newest, v)
	}
	return oldest, newest
}

// addAnswer adds an answer. One that was cut off ends the episode and gets no reward.
func (l *rewardLedger) addAnswer(r Row, cutOff bool) {
	row := &r
	row.Reward = l.total[r.Seat]
	l.rows = append(l.rows, row)
	if cutOff {
		row.Terminal, row.Truncated = true, true
		return
	}
	row.NoReward = true
	l.waiting[r.Seat] = append(l.waiting[r.Seat], row)
}

// addToolAnswer adds an answer that is no action: it called a tool, and waits for no reward.
func (l *rewardLedger) addToolAnswer(r Row) {
	r.Reward = l.total[r.Seat]
	l.rows = append(l.rows, &r)
}

// pay assigns the rewards of a step, by seat.
func (l *rewardLedger) pay(rewards map[string]float64, terminated, truncated bool) {
	l.terminated, l.truncated = terminated, truncated
	for seat, reward := range rewards {
		l.paid[seat] = true
		if (terminated || truncated) && l.acted(seat) {
			l.addToLast(seat, reward)
			continue
		}
		l.total[seat] += reward
		waiting := l.waiting[seat]
		if len(waiting) == 0 {
			if reward != 0 {
				l.unmatched++
			}
			continue
		}
		row := waiting[0]
		l.waiting[seat] = waiting[1:]
		row.StepReward, row.Reward, row.NoReward = reward, l.total[seat], false
	}
}

// addToLast adds a reward to the last answer of a seat, which must have acted: what the environment or a judge gives at the end.
func (l *rewardLedger) addToLast(seat string, reward float64) {
	l.total[seat] += reward
	for _, r := range slices.Backward(l.rows) {
		if r.Seat == seat {
			r.StepReward += reward
			r.Reward, r.NoReward = l.total[seat], false
			return
		}
	}
}

// acted reports whether a seat answered.
func (l *rewardLedger) acted(seat string) bool {
	return slices.ContainsFunc(l.rows, func(r *Row) bool { return r.Seat == seat })
}

// known reports whether a seat acted or got a reward. Otherwise its reward is unknown.
func (l *rewardLedger) known(seat string) bool {
	return l.paid[seat] || l.acted(seat)
}

// ending says how an episode ended.
type ending struct {
	Failed bool
	// Cut means that the episode was cut off before the environment ended it.
	Cut bool
	// Every makes every row trainable and not only the last one, since prompts are cut and none contains those before.
	Every bool
}

// close completes the rows.
func (l *rewardLedger) close(e ending, trains map[string]bool) []Row {
	last := map[string]*Row{}
	for _, r := range l.rows {
		last[r.Seat] = r
	}
	out := make([]Row, 0, len(l.rows))
	for _, r := range l.rows {
		if last[r.Seat] == r {
			r.Terminal, r.Truncated = r.Terminal || l.terminated, r.Truncated || l.truncated || e.Cut && !e.Failed
			r.Completed = !e.Failed
		}
		r.Trainable = !e.Failed && trains[r.Seat] && (e.Every || r.Completed)
		out = append(out, *r)
	}
	return out
}
