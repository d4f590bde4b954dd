package cluster

import (
	"encoding/json"
	"testing"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/run/cluster/allot"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/llm"
)

// TestRisk: what a lost worker may have spent is at risk, unless its lots are all done, and so is that of one that says so. One that
// leaves has recorded everything.
func TestRisk(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.budget = 1000 * llm.Dollar
	l.play()
	name := l.name()
	status := l.status(name)
	for session, exposed := range map[string]llm.Money{"done": 3 * llm.Dollar, "playing": 5 * llm.Dollar, "owes": 7 * llm.Dollar, "left": 11 * llm.Dollar} {
		l.session = session
		x := l.take(name)
		ask, err := json.Marshal(allot.Ask{Worker: session, Seq: 1, Stake: budget.Stake{AtStake: exposed}, Exposed: exposed})
		if err == nil {
			_, err = l.conn.RequestMsgWithContext(t.Context(), name.Ask(hub.MoneySubject(name.Run), ask))
		}
		if err == nil && session == "done" {
			err = l.end(x)
		}
		if err == nil && (session == "owes" || session == "left") {
			err = l.leave(session)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l.session = ""
	status(func(s Status) bool { return s.Money.AtRisk == 15*llm.Dollar && len(s.Money.Allotted) == 0 })
	status(func(s Status) bool { return s.Money.AtRisk == 12*llm.Dollar })
}

// leave says that a worker ends.
func (l *lab) leave(session string) error {
	l.Helper()
	data, err := json.Marshal(hub.Working{Session: session, Run: clustertest.Run, Leaves: true, Owes: session == "owes"})
	if err != nil {
		return err
	}
	return l.conn.Publish(hub.StatsSubject(clustertest.Run), data)
}
