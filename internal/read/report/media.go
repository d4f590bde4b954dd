package report

import (
	"html/template"
	"unicode/utf8"

	"parley/internal/run/results"
	"parley/world"
)

// Heat is a heat map: a table whose cells are coloured by their values.
type Heat struct {
	Row, Column string
	Columns     []string
	Rows        []HeatRow
	Low, High   string     // the numbers at the ends of the colours
	Ramp        []HeatCell // the colours from Low to High
}

// HeatRow is a row of a Heat.
type HeatRow struct {
	Name  string
	Cells []HeatCell
}

// HeatCell is a value and its colour: a level from 0 to HeatLevels, or -1 for none. Numbers below
// 0 have another colour if the scale has both signs.
type HeatCell struct {
	Text, Tip string
	Level     int
	Below     bool
}

// heatLevels is the level of the strongest colour.
const heatLevels = 20

// Replay is a world.Replay with its pictures made safe.
type Replay struct {
	Base   template.HTML
	Frames []ReplayFrame
}

// ReplayFrame is a frame of a Replay.
type ReplayFrame struct {
	Title   string
	Picture template.HTML
	Lines   []world.FrameLine
}

// Transcript is an episode to read.
type Transcript struct {
	ID      string // its anchor
	Title   string
	State   string
	Scores  string
	Seats   []string
	Lines   []TranscriptLine
	Cut     string // describes what is missing; empty if nothing is
	Replays []Block
}

// StoryWords counts the characters of the texts and replays of the story.
func (t *Transcript) StoryWords() (n int) {
	for _, b := range t.Replays {
		n += utf8.RuneCountInString(b.Text)
		if b.Replay == nil {
			continue
		}
		for _, f := range b.Replay.Frames {
			n += utf8.RuneCountInString(f.Title)
			for _, l := range f.Lines {
				n += utf8.RuneCountInString(l.Who + l.To + l.Mark + l.Text)
			}
		}
	}
	return n
}

// TranscriptLine is a line of a Transcript.
type TranscriptLine struct {
	results.Line
	Class string // the colour of its seat
	Data  bool   // data for programs, which is folded
	Right bool   // at the right, as every other seat is
	Cut   bool   // the line was longer
}
