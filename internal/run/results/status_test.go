package results

import (
	"strings"
	"testing"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
)

// TestStatusOf checks what people are told about runs in every state, and how the states are coloured.
func TestStatusOf(t *testing.T) {
	t.Parallel()
	steered := func(verb journal.SteerVerb) *journal.Steered {
		return &journal.Steered{At: time.Date(2026, 11, 18, 10, 31, 0, 0, time.UTC), Verb: verb, By: "ctl"}
	}
	closed := func(state journal.State, kind journal.ReasonKind, detail string) journal.Closed {
		return journal.Closed{State: state, Reason: journal.Reason{Kind: kind, Detail: detail}}
	}
	complete := closed(journal.Complete, "", "")
	for _, c := range []struct {
		name   string
		o      runfile.Outline
		played bool
		state  State
		class  Class
		reason string // a part of it
	}{
		{"not played yet", runfile.Outline{}, false, StateNew, ClassNone, "not played"},
		{"played", runfile.Outline{Open: true}, true, StatePlaying, ClassBusy, "a process plays it"},
		{"killed", runfile.Outline{Open: true, Paused: steered(journal.SteerPause)}, false, StateCutOff, ClassBad, "parley run"},
		{"paused", runfile.Outline{Open: true, Paused: steered(journal.SteerPause)}, true, StatePaused, ClassWarning, "by ctl at 10:31:00 UTC: no call is sent"},
		{"draining", runfile.Outline{Open: true, Draining: steered(journal.SteerDrain)}, true, StateDraining, ClassWarning, "no more begin"},
		{"paused and draining", runfile.Outline{Open: true, Paused: steered(journal.SteerPause), Draining: steered(journal.SteerDrain)}, true, StatePaused, ClassWarning, "until it is resumed"},
		{"stopping", runfile.Outline{Open: true, Paused: steered(journal.SteerPause), Stopping: steered(journal.SteerStop)}, true, StateStopping, ClassWarning, "no more calls"},
		{"complete", runfile.Outline{Last: complete, Episodes: journal.EpisodeCounts{Ended: 500}}, false, StateComplete, ClassGood, ""},
		{"complete, file open elsewhere", runfile.Outline{Last: complete, Episodes: journal.EpisodeCounts{Ended: 500}}, true, StateComplete, ClassGood, ""},
		{"some failed", runfile.Outline{Last: complete, Episodes: journal.EpisodeCounts{Ended: 1497, Failed: 3}}, false, StateSome, ClassWarning, "complete, and 3 of 1,500 episodes failed"},
		{"all failed", runfile.Outline{Last: complete, Episodes: journal.EpisodeCounts{Failed: 500}}, false, StateAll, ClassBad, "complete, and all 500 episodes failed"},
		{"the only one failed", runfile.Outline{Last: complete, Episodes: journal.EpisodeCounts{Failed: 1}}, false, StateAll, ClassBad, "its episode failed"},
		{"budget", runfile.Outline{Last: closed(journal.Stopped, journal.ByBudget, "$1.00 is spent"), Episodes: journal.EpisodeCounts{Failed: 2}}, false, StateStopped, ClassWarning, "budget: $1.00 is spent"},
		{"grown", runfile.Outline{Last: closed(journal.Stopped, journal.ByGrowth, ""), Episodes: journal.EpisodeCounts{Ended: 2}}, false, StateStopped, ClassWarning, "the plan has grown"},
		{"error", runfile.Outline{Last: closed(journal.Failed, journal.ByError, "episode 3 diverged")}, false, StateFailed, ClassBad, "episode 3 diverged"},
	} {
		got := StatusOf(c.o, c.played)
		if got.State != c.state || got.State.Class() != c.class || !strings.Contains(got.Reason, c.reason) || c.reason == "" && got.Reason != "" {
			t.Errorf("%s: %+v, %s", c.name, got, got.State.Class())
		}
		if want := map[bool]string{true: runfile.Playing, false: Unfinished}[got.State.Played()]; got.State.OfEpisode(runfile.Playing) != want || got.State.OfEpisode(runfile.Ended) != runfile.Ended {
			t.Errorf("%s: %s", c.name, got.State.OfEpisode(runfile.Playing))
		}
	}
}
