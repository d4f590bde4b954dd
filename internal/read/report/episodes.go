package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// The limits of transcripts on a page.
const (
	maxLine        = 6000    // characters of a line
	maxAsked       = 2000    // characters of a line of a client's request
	maxLines       = 400     // lines of a transcript
	maxNoteLines   = 8       // lines of a note that is not folded
	maxShortNote   = 100     // bytes of a note beside its name
	maxReportWords = 4 << 20 // characters of all transcripts, with their stories
)

// episodes returns the table of the first limit episodes.
func episodes(r *results.Run, limit int, talk Section, run string) Section {
	s := Section{ID: "episodes", Title: "Episodes"}
	t := &Table{Name: "episodes", Title: "Episodes", Track: -1, Quiet: true, Filter: true, Columns: []Column{
		{Name: "episode", Number: true, Key: true}, textColumn("state"), textColumn("cell"), NumberColumn("deal"), textColumn("lineup"), textColumn("scores"), NumberColumn("calls"), NumberColumn("tokens"), NumberColumn("cost"),
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
			n, Word(r.State.OfEpisode(e.State)), Word(e.Cell), whole(e.Deal), lineup, result, whole(e.Calls), whole(e.Usage.Total()), money(e.Cost),
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
		if e.State == runfile.Waiting {
			continue
		}
		spec, _ := s.Run.Spec(e.Number)
		kind := s.Kind.Of(spec)
		read, err := results.ReadTranscript(ctx, s.Journal, s.Run.Head, s.Run.Kind().Of(spec), e.Number)
		if err != nil {
			return out, err
		}
		s.problems.note(read.Failed)
		s.problems.note(read.Mark(kind))
		t := newTranscript(e, read, read.Lines, &left, colours)
		t.ID, t.State = anchorOf(run, e.Number), s.Run.State.OfEpisode(e.State)
		end, err := s.Run.Head.Ended.Outcome(ctx, s.Journal, e.Number)
		if err != nil {
			return out, err
		}
		if end != nil {
			story, err := read.Story(kind, world.Played{Episode: e.Number, Spec: spec, Outcome: end.Outcome})
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
func blocks(story []exhibit.Exhibit, colours *Palette) (out []Block) {
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
		if l.Said != results.LineNote && l.Said != results.LinePhase && l.Said != results.LineAsked && !slices.Contains(t.Seats, l.Seat) {
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
		if l.Said == results.LineAsked {
			line.Right, limit = true, maxAsked
		}
		if at := slices.Index(t.Seats, l.Seat); at >= 0 {
			line.Class, line.Right = colours.Seat(l.Seat, at, e.Lineup), at%2 == 1
		}
		words := l.Words()
		line.Data = l.Said != results.LineAsked && results.IsData(words)
		if l.Said == results.LineNote && strings.Count(words, "\n") > maxNoteLines {
			line.Data = true // a whole board, as that of Diplomacy
			if strings.HasPrefix(l.Text, "[") {
				words = l.Text // its items have no names
			}
		}
		line.Short = l.Said == results.LineNote && !line.Data && len(words) <= maxShortNote && !strings.Contains(words, "\n")
		line.Text = text.Excerpt(words, min(limit, *left))
		line.Cut = len(line.Text) != len(words)
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

// Episode is one episode to read, a window of its lines, in the order of time, at a time. The first window has the story: see Window.
type Episode struct {
	Transcript
	From, Total int            // the first line of the window, and how many lines were read
	Next, Prev  *results.Place // the windows after and before; nil: there are none
	Partial     bool           // not everything was read: there are more lines, and a story
	Style       template.CSS   // colours of the kind
	Problems    []string       // parts of the kind that failed
	Began       time.Time      // when the first reply came; zero: unknown
	// Prompts are what is new in the requests of the window, by the name of the call.
	Prompts map[string]results.Prompt
}

// Window says which part of an episode is wanted.
type Window struct {
	At    results.Place
	Lines int  // how many it has
	Quick bool // only a part of a long episode is read, without its story, if that is enough
	Story bool // windows after the first have the story too
}

// ReadEpisode reads one episode of a run, without the rest of the run.
func ReadEpisode(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, l *runfile.Listed, w Window) (*Episode, error) {
	head := &journal.Head{Begun: begun}
	colours := NewPalette(&results.Run{Head: head}, kind)
	kind = kind.Of(l.Spec)
	var want results.Wanted // everything
	if w.Quick && (w.At.Line == 0 || w.At.Entry != 0) {
		want = results.Wanted{At: max(w.At.Entry, -w.At.Entry), Back: w.At.Entry < 0, Lines: w.Lines}
	}
	read, err := results.ReadLines(ctx, j, begun, kind, l.Episode, l.Attempt, want)
	if err != nil {
		return nil, err
	}
	var failed problems
	failed.note(colours.Failed)
	failed.note(read.Failed)
	failed.note(read.Mark(kind))
	played := world.Played{Episode: l.Episode, Spec: l.Spec}
	if l.Ended != nil {
		played.Outcome = l.Ended.Outcome
	}
	var story []exhibit.Exhibit
	var notes []Block
	if _, around := read.Window(w.At, w.Lines); (around.Prev == nil || w.Story) && !read.Partial() {
		read.Playing = l.Ended == nil
		story, err = read.Story(kind, played)
		if l.Ended != nil { // a kind may need the outcome for its story
			failed.note(err)
		}
		if _, own := world.As[part.Storyteller](kind); !own {
			notes = noteBlocks(read.Lines, colours)
		}
	}
	e := &Episode{Partial: read.Partial(), Total: len(read.Lines), Style: colours.Style(), Began: results.ByTime(read.Lines)}
	window, around := read.Window(w.At, w.Lines)
	e.From, e.Next, e.Prev = around.From, around.Next, around.Prev
	if e.Prompts, err = results.Prompts(read.Lines, window, read.Fill); err != nil {
		return nil, err
	}
	left := maxReportWords
	e.Transcript = newTranscript(results.NewEpisode(l), read.Transcript, window, &left, colours)
	e.Replays, e.Problems = append(notes, blocks(story, colours)...), failed
	return e, nil
}

// maxTerminal is the maximum number of sessions that the terminal lists.
const maxTerminal = 30

// sessionName returns the first of the params that tell sessions apart: the cell may be a condition that several have. It is empty if
// there is none.
func sessionName(r *results.Run, names []string, episode int) string {
	var params map[string]any
	spec, ok := r.Spec(episode)
	if !ok || len(names) == 0 || json.Unmarshal(spec.Params, &params) != nil {
		return ""
	}
	name, _ := params[names[0]].(string)
	return name
}

// sessions returns the first limit sessions of a record.
func sessions(ctx context.Context, from Source, recorded part.Recorded, limit int) (Section, error) {
	r, s := from.Run, Section{ID: "kind", Title: "Sessions"}
	t := &Table{Name: "sessions", Title: "Sessions", Track: -1, Filter: true, Columns: []Column{
		KeyColumn("session"), NumberColumn("episode"), textColumn("state"), NumberColumn("calls"), NumberColumn("tokens"), NumberColumn("cost"), textColumn("closed"),
	}}
	var names []string
	from.problems.note(results.CallKind(from.Kind, "Names", func() error { names = recorded.Names(); return nil }))
	for e := range r.All() {
		if len(t.Rows) == limit {
			s.Text = fmt.Sprintf("The first %s of %s sessions.", text.GroupDigits(limit), text.GroupDigits(r.Episodes.Total))
			break
		}
		state, why := "open", ""
		end, err := r.Head.Ended.Outcome(ctx, from.Journal, e.Number)
		if err != nil {
			return s, err
		}
		if end != nil {
			state = "closed"
			from.problems.note(results.CallKind(from.Kind, "Closed", func() error { why = recorded.Closed(end.Outcome); return nil }))
		}
		t.Rows = append(t.Rows, []Cell{
			Word(cmp.Or(sessionName(r, names, e.Number), e.Cell)), whole(e.Number), Word(state), whole(e.Calls), whole(e.Usage.Total()), money(e.Cost), Word(text.Excerpt(why, 300)),
		})
	}
	t.Quiet = len(t.Rows) > maxTerminal
	s.Blocks = []Block{{Table: t}}
	return s, nil
}
