package page

import (
	"html/template"

	"parley/internal/view"
	"parley/world"
)

// Heat is a heat map: a table whose cells are coloured by their values.
type Heat struct {
	Row, Column string
	Columns     []string
	Rows        []HeatRow
	Low, High   string     // what the ends of the colours stand for
	Ramp        []HeatCell // the colours from Low to High
}

// HeatRow is a row of a Heat.
type HeatRow struct {
	Name  string
	Cells []HeatCell
}

// HeatCell is a value and its colour: a level from 0 to HeatLevels, or -1 for none. What is below
// 0 on a scale that goes both ways has another colour.
type HeatCell struct {
	Text, Tip string
	Level     int
	Below     bool
}

// HeatLevels is the level of the strongest colour.
const HeatLevels = 20

// Replay is a world.Replay with its pictures made safe.
type Replay struct {
	Base   template.HTML
	Frames []ReplayFrame
}

// ReplayFrame is a moment of it.
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
	Cut     string // what is missing, in words; empty: nothing
	Replays []Block
}

// TranscriptLine is a line of it.
type TranscriptLine struct {
	view.Line
	Class string // the colour of its seat
	Data  bool   // it is data for programs, which is folded away
	Right bool   // it stands at the right: every other seat does
	Cut   bool   // it was longer
}
