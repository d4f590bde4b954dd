package scenario

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
)

// story shows an episode turn by turn: a picture of who spoke to whom, and beside it what
// was said, decided, told, measured and checked.
func story(notes []world.Note) []world.Exhibit {
	c := readChronicle(notes)
	if len(c.Actors) == 0 || len(c.chapters) == 0 {
		return nil
	}
	show := world.Replay{Base: newGraph(c.names(c.Actors)).svg(true, false)}
	for _, at := range c.chapters {
		frame := world.Frame{Title: fmt.Sprintf("Turn %d of %d", at.number, c.Turns), Lines: c.frameLines(at), SVG: c.graph(at).svg(false, true)}
		if at.number == 0 {
			frame.Title = "The start"
		}
		show.Frames = append(show.Frames, frame)
	}
	if c.end != nil && len(show.Frames) > 0 {
		last := &show.Frames[len(show.Frames)-1]
		last.Lines = append(last.Lines, world.FrameLine{Text: "It is over: " + c.end.Why + "."})
	}
	return []world.Exhibit{{
		Name: "scenario-replay", Title: "Turn by turn", Show: show,
		Caption: "Arrows are private messages of the turn, a ring is a statement in public, a surface between actors a coalition that was formed.",
	}}
}

// graph returns the graph of who spoke to whom in a turn.
func (c *chronicle) graph(at *chapter) *graph {
	g := newGraph(c.names(c.Actors))
	index := func(short string) int { return slices.Index(c.Actors, short) }
	for _, m := range at.messages {
		if from, to := index(m.seat), index(m.note.To); from >= 0 && to >= 0 {
			g.wrote[from][to]++
		}
	}
	for _, s := range at.statements {
		if i := index(s.seat); i >= 0 {
			g.loud[i] = true
		}
	}
	for _, p := range at.coalitions {
		var members []int
		for _, m := range p.note.Members {
			if i := index(m); i >= 0 {
				members = append(members, i)
			}
		}
		if p.note.Formed {
			g.groups = append(g.groups, members)
		}
	}
	return g
}

// frameLines describes a turn in the order in which it happened.
func (c *chronicle) frameLines(at *chapter) []world.FrameLine {
	var lines []world.FrameLine
	add := func(who, to, format string, args ...any) {
		lines = append(lines, world.FrameLine{Who: who, To: to, Text: fmt.Sprintf(format, args...)})
	}
	for _, s := range at.statements {
		add(c.name(s.seat), "all", "%s", s.note.Text)
	}
	for _, m := range at.messages {
		add(c.name(m.seat), c.name(m.note.To), "%s", m.note.Text)
	}
	for _, p := range at.coalitions {
		add(c.name(p.seat), strings.Join(c.names(p.note.Members), ", "), "%s", coalitionText(c, p.note))
	}
	for _, d := range at.decisions {
		add(c.name(d.seat), "", "%s", decisionText(d.note))
	}
	for _, s := range at.silent {
		add(c.name(s.seat), "", "did nothing%s", because(string(s.note.Failed)))
	}
	for _, e := range at.events {
		add("", "", "From outside, %s: %s", e.Name, e.Description)
	}
	if w := at.world; w != nil {
		add("narrator", "", "%s", worldText(*w))
	}
	for _, line := range c.found(at) {
		add("", "", "%s", line)
	}
	return lines
}

// found describes what was measured and checked in a turn.
func (c *chronicle) found(at *chapter) []string {
	var metrics, lines []string
	for _, m := range at.metrics {
		metrics = append(metrics, c.own(m.seat, m.note.Name)+" "+shown(m.note))
	}
	if len(metrics) > 0 {
		lines = append(lines, "Measured: "+strings.Join(metrics, "; ")+".")
	}
	for _, t := range at.thresholds {
		lines = append(lines, fmt.Sprintf("%s passed its %s threshold of %g with %g.", c.own(t.seat, t.note.Name), t.note.Level, t.note.Limit, t.note.Value))
	}
	for _, f := range at.checks {
		what := "Check " + c.own(f.seat, strings.ReplaceAll(f.note.Check, "_", " "))
		switch {
		case f.note.Unknown:
			lines = append(lines, what+": unknown"+because(string(f.note.Failed))+".")
		case f.note.Passed:
			lines = append(lines, what+": passed.")
		}
		for _, i := range f.note.Issues {
			lines = append(lines, what+", "+i.Severity+": "+i.Text)
		}
	}
	return lines
}

// own puts the name of an actor before what belongs to it.
func (c *chronicle) own(seat, what string) string {
	if seat == "" {
		return what
	}
	return c.name(seat) + "'s " + what
}

func because(failed string) string {
	if failed == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(failed, "_", " ") + ")"
}

// part is lines with a title.
type part struct {
	title string
	lines []string
}

// parted adds the parts that are not empty to a text, one line each.
func parted(text string, parts ...part) string {
	lines := []string{text}
	for _, p := range parts {
		if words := slices.DeleteFunc(slices.Clone(p.lines), func(l string) bool { return l == "" }); len(words) > 0 {
			lines = append(lines, p.title+": "+strings.Join(words, "; "))
		}
	}
	return strings.Join(lines, "\n")
}

func decisionText(d recordDecision) string {
	return parted("Does: "+d.Action, part{"Why", []string{d.Reasoning}}, part{"Goals", d.LongTerm}, part{"Next", d.ShortTerm},
		part{"Goals added", d.Added}, part{"Goals dropped", d.Dropped}, part{"Learned", []string{d.Reflection}})
}

func worldText(w recordWorld) string {
	text := w.State
	if w.Stale {
		text = "No account was written" + because(string(w.Failed)) + ": the situation stays as it was."
	}
	return parted(text, part{"What changed", w.Changes}, part{"What may follow", w.Consequences}, part{"Not known in public", w.Hidden})
}

func coalitionText(c *chronicle, p coalition) string {
	var parts []part
	for _, a := range p.Answers {
		verb := "declines"
		if a.Accepts {
			verb = "accepts"
		}
		parts = append(parts, part{c.name(a.Actor) + " " + verb, []string{a.Text}})
	}
	return parted("proposes a coalition: "+p.Purpose, append(parts, part{"Agreed", []string{p.Agreed}}, part{"In public", []string{p.Statement}})...)
}
