package report

import (
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/world/exhibit"
)

// Document is a report: sections of blocks. Everything that is drawn
// is also in a table, so that the terminal, JSON and CSV have all that the page has.
type Document struct {
	Title    string
	Made     string // the program that made it
	Back     string // the address of the page that leads here; empty: it is a file of its own
	Sections []Section
	Style    template.CSS // colours of kinds
	Problems []string     // parts of kinds that failed
}

// Section is a part of the report with a heading.
type Section struct {
	ID, Title, Text string
	Blocks          []Block
}

// Block is an element of a section. Any of its parts may be missing.
type Block struct {
	Title, Caption string
	Facts          []Fact
	Table          *Table
	Drawing        template.HTML // of the numbers in Table, which is then folded
	Legend         []Series      // of the drawing
	Heat           *Heat
	Text           string
	Finding        bool // Text says what came out, in a sentence
	List           []string
	Pre            bool // Text keeps its lines
	Replay         *Replay
	Transcripts    []Transcript
	OffPage        bool         // only for the terminal and files
	Folded         bool         // the page shows the title, and the rest on demand
	Style          template.CSS // of a foreign drawing
}

// Series is an entry of a legend.
type Series struct {
	Name string
	Look chart.Look
	Bar  bool // it is drawn as bars
}

// Fact is a headline number or word.
type Fact struct{ Name, Value, More string }

// Table is rows of cells.
type Table struct {
	Name    string // in files
	Title   string
	Columns []Column
	Rows    [][]Cell
	// Track is the column that is also drawn, as dots with whiskers, or -1. Share
	// makes its scale go from 0 to 1.
	Track int
	Share bool
	// Loose means that the scale of Track need not include 0.
	Loose bool
	// Grouped puts rows with the same first cell under their own heading, with their own scale.
	Grouped bool
	// Sketch means that the terminal draws the tracked column too.
	Sketch bool
	// Quiet tables are not printed in the terminal: they are long, or data of a drawing.
	Quiet  bool
	Filter bool // the page has a field to filter rows by
	// MaxRows is the number of rows that people see, 0 for all, and Rest describes the others.
	// Files have all rows.
	MaxRows int
	Rest    string
}

// Column is the head of a column.
type Column struct {
	Name   string
	Number bool // aligned to the right
	Key    bool // names the row
	Detail bool // only for files
}

// Cell is a value, as text for people and as data for programs.
type Cell struct {
	Text  string
	Value any        // string, int, float64, bool, llm.Money, statmath.Quantity, or nil if unknown
	Link  string     // an anchor of the page
	Look  chart.Look // of its drawing
	// Episodes are those that Text names, and Links their addresses, if they have any.
	Episodes []int
	Links    []string
	Frame    string // of the replay of the one episode, which Text names instead
}

// Linked returns sections in which the episodes that cells name have addresses. It changes nothing in the sections that it gets.
func Linked(sections []Section, address func(episode int) string) []Section {
	sections = slices.Clone(sections)
	for i := range sections {
		sections[i].Blocks = slices.Clone(sections[i].Blocks)
		for j := range sections[i].Blocks {
			if b := &sections[i].Blocks[j]; b.Table != nil {
				b.Table = b.Table.linked(address)
			}
		}
	}
	return sections
}

func (t *Table) linked(address func(episode int) string) *Table {
	out := *t
	out.Rows = slices.Clone(t.Rows)
	for i, row := range t.Rows {
		if !slices.ContainsFunc(row, func(c Cell) bool { return len(c.Episodes) > 0 }) {
			continue
		}
		out.Rows[i] = slices.Clone(row)
		for j := range row {
			c := &out.Rows[i][j]
			c.Links = nil
			for _, n := range c.Episodes {
				to := address(n)
				if c.Frame != "" {
					to += "#frame=" + url.PathEscape(exhibit.Visible(c.Frame)) // as the page shows its title
				}
				c.Links = append(c.Links, to)
			}
		}
	}
	return &out
}

// episodeCell names episodes.
func episodeCell(all []int) Cell {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	c := Word(strings.Join(words, ", "))
	if c.Episodes = all; len(all) == 1 {
		c.Value = all[0]
	}
	return c
}

// Trimmed returns the table without empty columns and without the rows beyond MaxRows.
func (t *Table) Trimmed() *Table {
	if t.MaxRows > 0 && len(t.Rows) > t.MaxRows {
		cut := *t
		cut.Rows = t.Rows[:t.MaxRows]
		t = &cut
	}
	says := make([]bool, len(t.Columns))
	for i := range t.Columns {
		says[i] = i == 0 || len(t.Rows) == 0
		for _, r := range t.Rows {
			says[i] = says[i] || (r[i].Text != "" && r[i].Text != "–" && !t.Columns[i].Detail)
		}
	}
	out := *t
	out.Columns, out.Rows, out.Track = nil, nil, -1
	for i, c := range t.Columns {
		if says[i] {
			if i == t.Track {
				out.Track = len(out.Columns)
			}
			out.Columns = append(out.Columns, c)
		}
	}
	for _, r := range t.Rows {
		var row []Cell
		for i, c := range r {
			if says[i] {
				row = append(row, c)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return &out
}

// Tables lists all tables, in order.
func (d *Document) Tables() []*Table {
	var out []*Table
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if b.Table != nil {
				out = append(out, b.Table)
			}
		}
	}
	return out
}

// MarshalJSON writes {"title", "tables"}, and "problems" if there are any.
func (d *Document) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Title    string   `json:"title"`
		Tables   []*Table `json:"tables"`
		Problems []string `json:"problems,omitempty"`
	}{d.Title, d.Tables(), d.Problems})
}

// MarshalJSON writes a table as {"name", "title", "columns", "rows"}; a row is column to value.
func (t *Table) MarshalJSON() ([]byte, error) {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = c.Name
	}
	rows := make([]map[string]any, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = make(map[string]any, len(r))
		for j, c := range r {
			rows[i][columns[j]] = c.Value
		}
	}
	return json.Marshal(struct {
		Name    string           `json:"name"`
		Title   string           `json:"title"`
		Columns []string         `json:"columns"`
		Rows    []map[string]any `json:"rows"`
	}{t.Name, t.Title, columns, rows})
}

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

// HeatCell is a value and its colour: a level from 0 to heatLevels, or -1 for none. Numbers below
// 0 have another colour if the scale has both signs.
type HeatCell struct {
	Text, Tip string
	Level     int
	Below     bool
}

// heatLevels is the level of the strongest colour.
const heatLevels = 20

// Replay is a exhibit.Replay with its pictures made safe.
type Replay struct {
	Base   template.HTML
	Frames []ReplayFrame
}

// ReplayFrame is a frame of a Replay.
type ReplayFrame struct {
	Title   string
	Turn    string // see exhibit.Frame
	Picture template.HTML
	Lines   []exhibit.FrameLine
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
	Short bool   // a note of one line, which stands beside its name
	Right bool   // at the right, as every other seat is
	Cut   bool   // the line was longer
}

// Label names the run of the blocks of a section, for reports of several runs.
func (s *Section) Label(run string) {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.Table != nil {
			b.Table.insert(run)
		}
		if b.Table == nil || b.Drawing != "" || b.Heat != nil {
			b.Title = strings.TrimPrefix(b.Title+" · "+run, " · ")
		}
	}
}

// insert adds a column with the run of each row: the first column, or the second if rows are grouped by the first.
func (t *Table) insert(run string) {
	at := 0
	if t.Grouped {
		at = 1
	}
	t.Columns = slices.Insert(t.Columns, at, KeyColumn("run"))
	for i := range t.Rows {
		t.Rows[i] = slices.Insert(t.Rows[i], at, Word(run))
	}
	if t.Track >= 0 {
		t.Track++
	}
}

// Join adds the sections of another run. Tables of the same name become one.
func (d *Document) Join(sections []Section) {
	for _, s := range sections {
		at := slices.IndexFunc(d.Sections, func(o Section) bool { return o.ID == s.ID })
		if at < 0 {
			d.Sections = append(d.Sections, s)
			continue
		}
		for _, b := range s.Blocks {
			d.Sections[at].join(b)
		}
	}
}

func (s *Section) join(b Block) {
	for i := range s.Blocks {
		t := s.Blocks[i].Table
		if t == nil || b.Table == nil || t.Name != b.Table.Name || b.Drawing != "" || b.Heat != nil || len(t.Columns) != len(b.Table.Columns) {
			continue
		}
		t.Rows = append(t.Rows, b.Table.Rows...)
		if t.Grouped {
			t.Regroup()
		}
		return
	}
	s.Blocks = append(s.Blocks, b)
}

// Regroup puts rows of one group together, in the order in which the groups first appear. Rows beyond MaxRows stay
// behind.
func (t *Table) Regroup() {
	order := map[string]int{}
	for _, r := range t.Rows {
		if _, ok := order[r[0].Text]; !ok {
			order[r[0].Text] = len(order)
		}
	}
	rows := t.Rows
	if t.MaxRows > 0 {
		rows = rows[:min(len(rows), t.MaxRows)]
	}
	slices.SortStableFunc(rows, func(a, b []Cell) int { return order[a[0].Text] - order[b[0].Text] })
}
