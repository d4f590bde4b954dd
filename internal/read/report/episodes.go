package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/world"
)

// The limits of transcripts on a page.
const (
	maxLine        = 6000    // characters of a line
	maxAsked       = 2000    // characters of a line of a client's request
	maxLines       = 400     // lines of a transcript
	maxReportWords = 4 << 20 // characters of all transcripts, with their stories
)

// episodes returns the table of the first limit episodes.
func episodes(r *results.Run, limit int, talk Section, run string) Section {
	s := Section{ID: "episodes", Title: "Episodes"}
	t := &Table{Name: "episodes", Title: "Episodes", Track: -1, Quiet: true, Filter: true, Columns: []Column{
		{Name: "episode", Number: true, Key: true}, pageWords("state"), pageWords("cell"), Number("deal"), pageWords("lineup"), pageWords("scores"), Number("calls"), Number("tokens"), Number("cost"),
	}}
	anchors := map[string]bool{}
	for _, b := range talk.Blocks {
		for _, x := range b.Transcripts {
			anchors[x.ID] = true
		}
	}
	for e := range r.All() {
		if len(t.Rows) == limit {
			break
		}
		n := whole(e.Number)
		if id := anchorOf(run, e.Number); anchors[id] {
			n.Link = id
		}
		result := Cell{Text: mainScore(e.Scores), Value: scoresText(e.Scores)}
		if e.Failed != "" {
			result = Word(text.Excerpt(e.Failed, 300))
		}
		lineup := Word(lineupText(e.Lineup))
		if e.Cell != "" {
			lineup.Text = "" // the cell implies it
		}
		t.Rows = append(t.Rows, []Cell{
			n, Word(e.State), Word(e.Cell), whole(e.Deal), lineup, result, whole(e.Calls), whole(e.Tokens), money(e.Cost),
		})
	}
	s.Blocks = []Block{{Table: t}}
	if n := r.Episodes.Total; n > limit {
		s.Text = fmt.Sprintf("The first %s of %s episodes. The run file has all of them, and every number above is of all.", text.GroupDigits(limit), text.GroupDigits(n))
	}
	return s
}

// transcripts reads the first limit episodes of a run that have begun.
func transcripts(ctx context.Context, s Source, limit int, run string, colours *Palette) (Section, error) {
	out := Section{ID: "transcripts", Title: "Transcripts"}
	var all []Transcript
	left := maxReportWords
	begun := s.Run.Episodes.Total - s.Run.Episodes.Waiting
	for e := range s.Run.All() {
		if len(all) == min(limit, begun) || left <= 0 {
			break
		}
		if e.State == "waiting" {
			continue
		}
		read, err := results.Read(ctx, s.Journal, s.Run.Head, s.Run.Kind(), e.Number)
		if err != nil {
			return out, err
		}
		s.problems.note(read.Failed)
		s.problems.note(read.Mark(s.Kind))
		t := newTranscript(e, read, read.Lines, &left, colours)
		t.ID = anchorOf(run, e.Number)
		end, err := s.Run.Head.Ended.Outcome(ctx, s.Journal, e.Number)
		if err != nil {
			return out, err
		}
		if end != nil {
			spec, _ := s.Run.Spec(e.Number)
			story, err := read.Story(s.Kind, world.Played{Episode: e.Number, Spec: spec, Outcome: end.Outcome})
			s.problems.note(err)
			t.Replays = blocks(story, colours)
			left -= t.StoryWords()
		}
		all = append(all, t)
	}
	if begun > len(all) {
		out.Text = fmt.Sprintf("The first %s of %s episodes. parley show FILE --episode N shows any of them in full.", text.GroupDigits(len(all)), text.GroupDigits(begun))
	}
	if len(all) > 0 {
		out.Blocks = []Block{{Transcripts: all}}
	}
	return out, nil
}

// blocks turns the exhibits of an episode into blocks.
func blocks(story []world.Exhibit, colours *Palette) (out []Block) {
	for _, x := range story {
		if b, ok := ExhibitBlock(x, colours); ok {
			out = append(out, b)
		}
	}
	return out
}

// newTranscript returns a transcript with the given lines of those that were read.
func newTranscript(e results.Episode, read *results.Transcript, lines []results.Line, left *int, colours *Palette) Transcript {
	t := Transcript{
		Title: fmt.Sprintf("Episode %d", e.Number), State: e.State, Scores: scoresText(e.Scores),
	}
	for _, l := range read.Lines {
		if l.Said != results.SaidNote && l.Said != results.SaidAsked && !slices.Contains(t.Seats, l.Seat) {
			t.Seats = append(t.Seats, l.Seat) // the first speaker is at the left
		}
	}
	if e.Failed != "" {
		t.Scores = text.Excerpt(e.Failed, 300)
	}
	for i, l := range lines {
		if i == maxLines || *left <= 0 {
			t.Cut = fmt.Sprintf("%s more lines are not shown.", text.GroupDigits(len(lines)-i))
			break
		}
		line, limit := TranscriptLine{Line: l}, maxLine
		if l.Said == results.SaidAsked {
			line.Right, limit = true, maxAsked
		}
		if at := slices.Index(t.Seats, l.Seat); at >= 0 {
			line.Class, line.Right = colours.Seat(l.Seat, at), at%2 == 1
		}
		theText := l.Text
		if l.Said == results.SaidAnswer {
			theText = results.Readable(theText)
		}
		line.Data = l.Said != results.SaidAsked && results.IsData(theText)
		line.Text = text.Excerpt(theText, min(limit, *left))
		line.Cut = len(line.Text) != len(theText)
		*left -= utf8.RuneCountInString(line.Text)
		t.Lines = append(t.Lines, line)
	}
	return t
}

// anchorOf names an episode on the page.
func anchorOf(run string, episode int) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, run)
	return fmt.Sprintf("e-%s-%d", clean, episode)
}

func lineupText(lineup map[string]string) string {
	var parts []string
	for _, seat := range slices.Sorted(maps.Keys(lineup)) {
		parts = append(parts, seat+" = "+lineup[seat])
	}
	return strings.Join(parts, ", ")
}

// mainScore is the first score, for every seat that has it.
func mainScore(scores []world.Score) string {
	var parts []string
	for _, s := range scores {
		switch {
		case s.Name != scores[0].Name:
		case s.Seat == "":
			parts = append(parts, Real(s.Value).Text)
		default:
			parts = append(parts, s.Seat+" "+Real(s.Value).Text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return scores[0].Name + ": " + strings.Join(parts, ", ")
}

// scoresText is "first: points 3, revealed 0; second: …".
func scoresText(scores []world.Score) string {
	return ScoresText(len(scores), func(i int) (seat, text string) {
		return scores[i].Seat, scores[i].Name + " " + Real(scores[i].Value).Text
	})
}
