package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/scenario/script"
)

// episodeFiles writes an episode as files for people: the situation after each turn, what each
// actor decided, private talk and the findings of checks.
// The number in a file name is the turn.
func episodeFiles(p world.Played, notes []world.Note) map[string]string {
	c := readChronicle(notes)
	if len(c.chapters) == 0 {
		return nil
	}
	out := map[string]string{"scenario.md": c.overview(p)}
	for _, at := range c.chapters {
		if w := c.world(at); w != nil {
			out[fmt.Sprintf("world-state-%03d.md", at.number)] = c.worldFile(at, *w)
		}
		c.actorFiles(at, out)
		c.talkFiles(at, out)
		if checks := notesOf[checkNote](at, "check"); len(checks) > 0 {
			out[fmt.Sprintf("validation-%03d.md", at.number)] = c.checkFile(at.number, checks)
		}
	}
	return out
}

// sheet is a Markdown text being written.
type sheet struct{ script.Page }

// words writes the words of a model or a file: a paragraph that cannot fetch anything or look like
// a heading of ours.
func (s *sheet) words(text string) { s.Quote(exhibit.Markdown(text)) }

func (s *sheet) points(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.Heading("## %s", title)
	s.WriteByte('\n')
	for _, l := range lines {
		s.Line("- %s", inertLine(l))
	}
}

// part writes words under a heading, or nothing without any.
func (s *sheet) part(title, text string) {
	if text != "" {
		s.Heading("## %s", title)
		s.WriteByte('\n')
		s.words(text)
	}
}

// inertLine returns a text on one line that a Markdown reader shows unchanged.
func inertLine(words string) string { return exhibit.Markdown(script.OneLine(words)) }

// overview writes what was played and its scores.
func (c *chronicle) overview(p world.Played) string {
	var s sheet
	s.Line("# %s", inertLine(c.Name))
	s.Heading("Episode %d, deal %d, %d turns of %s.", p.Episode, p.Spec.Deal, len(c.chapters)-1, inertLine(c.TurnDuration))
	if p.Spec.Cell != "" {
		s.Heading("Variation: %s", inertLine(p.Spec.Cell))
	}
	if c.end != nil {
		s.Heading("It is over: %s.", inertLine(c.end.Why))
	}
	if c.dropped != nil {
		s.Heading("What was decided for turn %d was dropped.", c.dropped.Turn)
	}
	var actors, events []string
	for i, short := range c.Actors {
		actor := short
		if i < len(c.Names) {
			actor = c.Names[i] + " (" + short + ")"
		}
		if agent := p.Spec.Lineup[short]; agent != "" {
			actor += ", played by " + agent
		}
		actors = append(actors, actor)
	}
	s.points("Actors", actors)
	for _, at := range c.chapters {
		for _, e := range notesOf[eventNote](at, "event") {
			events = append(events, fmt.Sprintf("Turn %d, %s: %s", e.note.Turn, e.note.Name, e.note.Description))
		}
	}
	s.points("Events", events)
	var scores []string
	for _, score := range p.Outcome.Scores {
		scores = append(scores, fmt.Sprintf("%s: %g", c.own(score.Seat, score.Name), score.Value))
	}
	s.points("Scores", scores)
	return s.String()
}

func (c *chronicle) worldFile(at *chapter, w worldNote) string {
	var s sheet
	s.Line("# The situation after turn %d", at.number)
	s.WriteByte('\n')
	if w.Stale {
		s.Line("No account was written%s: the situation stays as it was.\n", because(inertLine(string(w.Failed))))
	}
	s.words(w.State)
	s.points("What changed", w.Changes)
	s.points("What may follow", w.Consequences)
	s.points("Not known in public", w.Hidden)
	var events []string
	for _, e := range notesOf[eventNote](at, "event") {
		events = append(events, e.note.Name+": "+e.note.Description)
	}
	s.points("From outside", events)
	if statements := notesOf[statementNote](at, "statement"); len(statements) > 0 {
		s.Heading("## Said in public")
		for _, said := range statements {
			s.Heading("%s:\n", inertLine(c.name(said.seat)))
			s.words(said.note.Text)
		}
	}
	return s.String()
}

func (c *chronicle) actorFiles(at *chapter, out map[string]string) {
	for _, d := range notesOf[decisionNote](at, "decision") {
		var s sheet
		s.Line("# %s, turn %d", inertLine(c.name(d.seat)), at.number)
		s.points("Long-term goals", d.note.LongTerm)
		s.points("Short-term goals", d.note.ShortTerm)
		s.points("Goals added", d.note.Added)
		s.points("Goals dropped", d.note.Dropped)
		s.part("Reasoning", d.note.Reasoning)
		s.part("Action", d.note.Action)
		s.part("Learned", d.note.Reflection)
		out[fmt.Sprintf("%s-%03d.md", fileWord(d.seat), at.number)] = s.String()
	}
	for _, quiet := range notesOf[silenceNote](at, "silence") {
		var s sheet
		s.Line("# %s, turn %d", inertLine(c.name(quiet.seat)), at.number)
		s.Heading("It did nothing%s.", because(inertLine(string(quiet.note.Failed))))
		out[fmt.Sprintf("%s-%03d.md", fileWord(quiet.seat), at.number)] = s.String()
	}
}

// talkFiles writes a file for each pair that talked and each coalition that was proposed.
func (c *chronicle) talkFiles(at *chapter, out map[string]string) {
	pairs := map[string]*sheet{}
	for _, m := range notesOf[messageNote](at, "message") {
		two := []string{fileWord(m.seat), fileWord(m.note.To)}
		slices.Sort(two)
		name := fmt.Sprintf("bilateral-%s-%03d.md", strings.Join(two, "-"), at.number)
		if pairs[name] == nil {
			pairs[name] = &sheet{}
			pairs[name].Line("# %s and %s, turn %d", inertLine(c.name(m.seat)), inertLine(c.name(m.note.To)), at.number)
		}
		pairs[name].Heading("%s:\n", inertLine(c.name(m.seat)))
		pairs[name].words(m.note.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		out[name] = pairs[name].String()
	}
	for _, p := range notesOf[coalitionNote](at, "coalition") {
		members := make([]string, len(p.note.Members))
		for i, m := range p.note.Members {
			members[i] = fileWord(m)
		}
		out[fmt.Sprintf("coalition-%s-%03d.md", strings.Join(members, "-"), at.number)] = c.coalitionFile(at, p)
	}
}

func (c *chronicle) coalitionFile(at *chapter, p fromSeat[coalitionNote]) string {
	var s sheet
	s.Line("# A coalition of %s, turn %d", inertLine(strings.Join(c.names(p.note.Members), ", ")), at.number)
	s.Heading("Proposed by %s.\n", inertLine(c.name(p.seat)))
	s.words(p.note.Purpose)
	for _, a := range p.note.Answers {
		verb := "declines"
		if a.Accepts {
			verb = "accepts"
		}
		s.Heading("%s %s:\n", inertLine(c.name(a.Actor)), verb)
		s.words(a.Text)
	}
	if !p.note.Formed {
		s.Heading("It was not formed.")
	}
	s.part("Agreed", p.note.Agreed)
	s.part("Said together", p.note.Statement)
	return s.String()
}

func (c *chronicle) checkFile(turn int, checks []fromSeat[checkNote]) string {
	var s sheet
	s.Line("# Checks of turn %d", turn)
	for _, f := range checks {
		result := "passed"
		switch {
		case f.note.Unknown:
			result = "unknown" + because(inertLine(string(f.note.Failed)))
		case !f.note.Passed:
			result = fmt.Sprintf("%d found", len(f.note.Issues))
		}
		s.Heading("## %s: %s", inertLine(c.own(f.seat, strings.ReplaceAll(f.note.Check, "_", " "))), result)
		s.WriteByte('\n')
		for _, i := range f.note.Issues {
			s.Line("- %s: %s", inertLine(i.Severity), inertLine(i.Text))
		}
		if f.note.Explanation != "" {
			s.words(f.note.Explanation)
		}
	}
	return s.String()
}

// fileWord returns a name as part of a file name.
func fileWord(name string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(script.Cut(name, 60)))
	if word == "" {
		return "_"
	}
	return word
}
