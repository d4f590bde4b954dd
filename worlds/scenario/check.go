package scenario

import (
	"slices"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// finding is the result of a check of a turn.
type finding struct {
	turn    int
	check   string
	actor   int // -1 if it is about the world
	unknown bool
	failed  llm.Kind
	answer  script.FormCheck
}

// checking returns the checks of a turn: checks of decisions for each actor
// that decided, checks of the world once.
func (g *game) checking(turn int) []question {
	if turn == 0 {
		return nil
	}
	var asks []question
	for _, c := range g.Validation.Checks {
		who := []int{-1}
		if c.Name == script.CheckDecisions || c.Name == script.CheckInformation || c.Name == script.CheckGoals {
			who = nil
			for i := range g.cast {
				if g.decided(i, turn) {
					who = append(who, i)
				}
			}
		}
		for _, i := range who {
			asks = append(asks, question{g.checkCall(c, i, turn), func(a *assessment, r world.Reply) {
				f := finding{turn: turn, check: c.Name, actor: i, failed: r.Failed}
				f.answer, f.unknown = script.ReadCheck(r, c.Severity)
				a.findings = append(a.findings, f)
			}})
		}
	}
	return asks
}

// found notes a finding, and halts the scenario if the script says so.
func (g *game) found(t *world.Table, f finding) {
	seat := ""
	if f.actor >= 0 {
		seat = g.cast[f.actor].ShortName
	}
	note := recordFinding{Turn: f.turn, Check: f.check, Unknown: f.unknown, Failed: f.failed, Explanation: f.answer.Explanation}
	for _, i := range f.answer.Issues {
		issue := Issue{Turn: f.turn, Check: f.check, Actor: seat, Severity: i.Severity, Text: i.Issue}
		note.Issues = append(note.Issues, issue)
		g.issues = append(g.issues, issue)
	}
	note.Passed = !f.unknown && len(note.Issues) == 0
	g.tally(f.check, note)
	if g.Validation.Reports || !note.Passed {
		t.Note("check", seat, note)
	}
	critical := slices.ContainsFunc(note.Issues, func(i Issue) bool { return i.Severity == "critical" })
	switch {
	case g.Validation.HaltOnCritical && critical:
		g.fail("halted: %s found a critical issue in turn %d", f.check, f.turn)
	case g.Validation.MaxIssues > 0 && len(g.issues) >= g.Validation.MaxIssues:
		g.fail("halted: %d issues were found by turn %d", len(g.issues), f.turn)
	}
}

func (g *game) tally(check string, f recordFinding) {
	for i := range g.checks {
		c := &g.checks[i]
		if c.Check != check {
			continue
		}
		c.Made++
		if f.Passed {
			c.Passed++
		}
		if f.Unknown {
			c.Unknown++
		}
	}
}
