package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/report/page"
	"parley/internal/view"
	"parley/world"
)

// The most that a page takes of transcripts: characters of a line, lines of a transcript,
// and characters of all of them.
const (
	mostLine  = 6000
	mostAsked = 2000 // of a line of what a client asked
	mostLines = 400
	mostWords = 4 << 20
)

// episodes is the table of episodes: the first of them, where there are many.
func episodes(r *view.Run, most int, talk page.Section, run string) page.Section {
	s := page.Section{ID: "episodes", Title: "Episodes"}
	t := &page.Table{Name: "episodes", Title: "Episodes", Track: -1, Quiet: true, Filter: true, Columns: []page.Column{
		{Name: "episode", Number: true, Key: true}, page.Words("state"), page.Words("cell"), page.Number("deal"), page.Words("lineup"), page.Words("scores"), page.Number("calls"), page.Number("tokens"), page.Number("cost"),
	}}
	there := map[string]bool{}
	for _, b := range talk.Blocks {
		for _, x := range b.Transcripts {
			there[x.ID] = true
		}
	}
	for e := range r.All() {
		if len(t.Rows) == most {
			break
		}
		n := page.Whole(e.Number)
		if id := anchorOf(run, e.Number); there[id] {
			n.Link = id
		}
		came := page.Cell{Text: mainScore(e.Scores), Value: scoresText(e.Scores)}
		if e.Failed != "" {
			came = page.Word(cut(e.Failed, 300))
		}
		lineup := page.Word(lineupText(e.Lineup))
		if e.Cell != "" {
			lineup.Text = "" // the cell's name says it
		}
		t.Rows = append(t.Rows, []page.Cell{
			n, page.Word(e.State), page.Word(e.Cell), page.Whole(e.Deal), lineup, came, page.Whole(e.Calls), page.Whole(e.Tokens), page.Money(e.Cost),
		})
	}
	s.Blocks = []page.Block{{Table: t}}
	if n := r.Episodes.Total; n > most {
		s.Text = fmt.Sprintf("The first %s of %s: all of them are in the run file. Every number above is of all.", page.Grouped(most), page.Grouped(n))
	}
	return s
}

// transcripts reads the first episodes of a run that were played.
func transcripts(ctx context.Context, s Source, most int, run string, colours *palette) (page.Section, error) {
	out := page.Section{ID: "transcripts", Title: "Transcripts"}
	var all []page.Transcript
	left := mostWords
	begun := s.Run.Episodes.Total - s.Run.Episodes.Waiting
	for e := range s.Run.All() {
		if len(all) == min(most, begun) || left <= 0 {
			break
		}
		if e.State == "waiting" {
			continue
		}
		read, err := view.ReadTranscript(ctx, s.Journal, s.Run, e.Number)
		if err != nil {
			return out, err
		}
		s.problems.note(read.Failed)
		s.problems.note(read.Mark(s.Kind))
		t := newTranscript(e, read, &left, colours)
		t.ID = anchorOf(run, e.Number)
		if end, ok := s.Run.Head.Ended[e.Number]; ok {
			spec, _ := s.Run.Spec(e.Number)
			story, err := read.Story(s.Kind, world.Played{Episode: e.Number, Spec: spec, Outcome: end.Outcome})
			s.problems.note(err)
			for _, x := range story {
				if b, ok := exhibit(x, colours); ok {
					t.Replays = append(t.Replays, b)
				}
			}
		}
		all = append(all, t)
	}
	if begun > len(all) {
		out.Text = fmt.Sprintf("The first %s of %s episodes. parley show FILE --episode N has any of them, whole.", page.Grouped(len(all)), page.Grouped(begun))
	}
	if len(all) > 0 {
		out.Blocks = []page.Block{{Transcripts: all}}
	}
	return out, nil
}

func newTranscript(e view.Episode, read *view.Transcript, left *int, colours *palette) page.Transcript {
	t := page.Transcript{
		Title: fmt.Sprintf("Episode %d", e.Number), State: e.State, Scores: scoresText(e.Scores),
	}
	for _, l := range read.Lines {
		if l.Said != view.SaidNote && l.Said != view.SaidAsked && !slices.Contains(t.Seats, l.Seat) {
			t.Seats = append(t.Seats, l.Seat) // who speaks first stands at the left
		}
	}
	if e.Failed != "" {
		t.Scores = cut(e.Failed, 300)
	}
	for i, l := range read.Lines {
		if i == mostLines || *left <= 0 {
			t.Cut = fmt.Sprintf("%s more lines are not shown.", page.Grouped(len(read.Lines)-i))
			break
		}
		line, most := page.TranscriptLine{Line: l}, mostLine
		if l.Said == view.SaidAsked {
			line.Right, most = true, mostAsked
		}
		if at := slices.Index(t.Seats, l.Seat); at >= 0 {
			line.Class, line.Right = colours.seat(l.Seat, at), at%2 == 1
		}
		text := l.Text
		if l.Said == view.SaidAnswer {
			text = readable(text)
		}
		line.Data = l.Said != view.SaidAsked && data(text)
		line.Text = cut(text, min(most, *left))
		line.Cut = len(line.Text) != len(text)
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

// mainScore is the first score a world names, of every seat that has it.
func mainScore(scores []world.Score) string {
	var parts []string
	for _, s := range scores {
		switch {
		case s.Name != scores[0].Name:
		case s.Seat == "":
			parts = append(parts, page.Real(s.Value).Text)
		default:
			parts = append(parts, s.Seat+" "+page.Real(s.Value).Text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return scores[0].Name + ": " + strings.Join(parts, ", ")
}

// scoresText is "first: points 3, revealed 0; second: …".
func scoresText(scores []world.Score) string {
	var b strings.Builder
	for i, s := range scores {
		switch {
		case i > 0 && scores[i-1].Seat == s.Seat:
			b.WriteString(", ")
		case i > 0:
			b.WriteString("; ")
		}
		if s.Seat != "" && (i == 0 || scores[i-1].Seat != s.Seat) {
			b.WriteString(s.Seat + ": ")
		}
		b.WriteString(s.Name + " " + page.Real(s.Value).Text)
	}
	return b.String()
}
