// Package page is a report before and while it is shown: a Document of sections, blocks
// and tables, and how it is written as one HTML page, as JSON and as CSV.
//
// What it promises of the HTML: one file that fetches nothing and runs no script but its
// own, which its security policy enforces; whatever was said stays text; it can be read
// without the script, with a keyboard, on paper, wide and narrow, in light and in dark.
//
// It knows nothing of runs: packages report and compare make documents.
package page

import (
	"encoding/json"
	"html/template"

	"parley/internal/report/chart"
)

// Document is a report before it is shown: sections of blocks. Everything that is drawn
// is also in a table, so that the terminal, JSON and CSV have all that the page has.
type Document struct {
	Title    string
	Made     string // by what
	Sections []Section
	Style    template.CSS // of colours that are not the page's own
	Problems []string     // parts of kinds that failed
}

// Section is a part of the report with a heading.
type Section struct {
	ID, Title, Text string
	Blocks          []Block
}

// Block is one thing to look at. Any of its parts may be missing.
type Block struct {
	Title, Caption string
	Facts          []Fact
	Table          *Table
	Drawing        template.HTML // of what Table holds, which is then folded away
	Legend         []Series      // of the drawing
	Heat           *Heat
	Text           string
	List           []string
	Pre            bool // Text keeps its lines
	Replay         *Replay
	Transcripts    []Transcript
	OffPage        bool         // it is for the terminal and for files only
	Folded         bool         // the page shows its title, and the rest on demand
	Style          template.CSS // of a drawing that is not ours
}

// Series is something that has a colour of its own in a drawing.
type Series struct {
	Name string
	Look chart.Look
	Bar  bool // it is drawn as bars
}

// Fact is something to know at once.
type Fact struct{ Name, Value, More string }

// Table is rows of cells.
type Table struct {
	Name    string // in files
	Title   string
	Columns []Column
	Rows    [][]Cell
	// Track is the column that is also drawn, as dots with whiskers; -1: none. Share means
	// that it is a share, and its scale goes from 0 to 1.
	Track int
	Share bool
	// Loose means that the scale of what is drawn need not begin at 0.
	Loose bool
	// Grouped means that rows with the same first cell stand under a heading of their own,
	// with a scale of their own.
	Grouped bool
	// Sketch means that the terminal draws the tracked column too.
	Sketch bool
	// Quiet tables are left out in the terminal: they are long, or data of a drawing.
	Quiet  bool
	Filter bool // the page has a field to filter rows by
	// Most is how many rows people are shown, 0 for all, and Rest what is said of the others.
	// Files have all.
	Most int
	Rest string
}

// Column is the head of a column.
type Column struct {
	Name   string
	Number bool // it stands at the right
	Key    bool // it names the row
	Detail bool // it is for files only
}

// Cell is a value, as people and as programs read it.
type Cell struct {
	Text  string
	Value any        // string, int, float64, bool, llm.Money, stats.Quantity, or nil where nothing is known
	Link  string     // an anchor of the page
	Look  chart.Look // of what is drawn
}

// Trimmed is the table without the columns that say nothing and without the rows beyond Most,
// for people to read.
func (t *Table) Trimmed() *Table {
	if t.Most > 0 && len(t.Rows) > t.Most {
		cut := *t
		cut.Rows = t.Rows[:t.Most]
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

// MarshalJSON writes {"title", "tables"}, and "problems" where there are any.
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
