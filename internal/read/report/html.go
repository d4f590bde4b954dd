package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/llm"
	"parley/world/exhibit"
)

//go:embed page.gohtml
var pageText string

//go:embed page.css
var styleText string

//go:embed page.js
var scriptText string

// WriteHTML writes the document as one page: a file that fetches nothing and runs only its own script, which its content security policy
// enforces. Text from models stays text. The page works without the script, with a keyboard, on paper, on wide and narrow screens, in
// light and dark mode.
func (d *Document) WriteHTML(w io.Writer) error {
	t, err := Templates()
	if err != nil {
		return err
	}
	var styles template.HTML
	var allowed []string
	for _, sheet := range d.styles() {
		styles += template.HTML("<style>" + sheet + "</style>\n") //nolint:gosec // ours, or from chart.Clean
		allowed = append(allowed, PolicyHash(sheet))
	}
	return t.Execute(w, map[string]any{
		"Document": d,
		"Styles":   styles,
		"Script":   template.HTML("<script>" + scriptText + "</script>"), //nolint:gosec // ours
		"Policy": "default-src 'none'; style-src " + strings.Join(allowed, " ") + "; script-src " + PolicyHash(scriptText) +
			"; base-uri 'none'; form-action 'none'",
	})
}

// Templates returns the templates of reports, for pages that show parts of one: block, table, lines.
func Templates() (*template.Template, error) {
	t, err := template.New("page").Funcs(functions()).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return t, nil
}

// BlockSize returns how many elements a block has on a page with these templates.
func BlockSize(t *template.Template, b Block) (elements int, err error) {
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, "block", b); err != nil {
		return 0, fmt.Errorf("template: %w", err)
	}
	return bytes.Count(text.Bytes(), []byte("<")) - bytes.Count(text.Bytes(), []byte("</")), nil
}

// Assets returns the style sheet and the script of reports.
func Assets() (style, script string) { return styleText, scriptText }

// PolicyHash returns the name of a script or a style sheet in a content security policy.
func PolicyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// styles returns the style sheets of the page: ours, and those of drawings, without duplicates.
func (d *Document) styles() []string {
	sheets := []string{styleText}
	if d.Style != "" {
		sheets = append(sheets, string(d.Style))
	}
	add := func(b Block) {
		if sheet := string(b.Style); sheet != "" && !slices.Contains(sheets, sheet) {
			sheets = append(sheets, sheet)
		}
	}
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			add(b)
			for _, t := range b.Transcripts {
				for _, r := range t.Replays {
					add(r)
				}
			}
		}
	}
	return sheets
}

func functions() template.FuncMap {
	return template.FuncMap{
		"visible":    exhibit.Visible,
		"paragraphs": func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n\n") },
		"groups":     groups,
		"width":      width,
		"track":      track,
		"sortable":   sortable,
		"isTrack":    func(t *Table, i int) bool { return t.Track == i },
		"plus":       func(a, b int) int { return a + b },
		"swatch":     chart.Swatch,
		"interval":   splitInterval,
		"meaning":    meaning,
	}
}

// meaning explains the name of a column that docs/concepts.md has. It is empty for others.
func meaning(column string) string {
	switch column {
	case "cell":
		return "A combination of agents and params that the plan asks for."
	case "deal":
		return "A number that decides what chance gives an episode. Each cell has the same deals."
	case "independent":
		return "The number of independent observations: episodes with the same deal, and copies of one play, count as one. The interval is computed from it."
	case "seat":
		return "A place in the world that an agent takes."
	case "total":
		return "The sum of all values. For a share, it is the number of times."
	case "distinct plays":
		return "Episodes that differ from each other: copies of one play count once."
	default:
		return ""
	}
}

// width returns the number of columns that a table has on the page.
func width(t *Table) int {
	n := len(t.Columns)
	if t.Track >= 0 {
		n++
	}
	if t.Grouped {
		n--
	}
	return n
}

// track draws the tracked cell of a row.
func track(g *group, c Cell) template.HTML {
	q, ok := c.Value.(statmath.Quantity)
	if !ok {
		return ""
	}
	look := c.Look
	if look.Class == "" {
		look = chart.Series(0)
	}
	return chart.Track(q, g.scale, look, fmt.Sprintf("%s, n = %d, %s", Interval(q), q.N, q.Method))
}

// splitInterval splits the text of a cell before the interval, so that a narrow column can break there.
func splitInterval(c Cell) [2]string {
	if _, ok := c.Value.(statmath.Quantity); !ok {
		return [2]string{c.Text}
	}
	value, rest, found := strings.Cut(c.Text, " ")
	if !found {
		return [2]string{value}
	}
	return [2]string{value, rest}
}

// sortable returns the number that a cell is sorted by, or "" if it is sorted by its text.
func sortable(c Cell) string {
	switch v := c.Value.(type) {
	case int:
		return fmt.Sprint(v)
	case float64:
		return fmt.Sprint(v)
	case llm.Money:
		return fmt.Sprint(int64(v))
	case statmath.Quantity:
		if math.IsNaN(v.Value) {
			return "-1e308"
		}
		return fmt.Sprint(v.Value)
	case nil:
		return "-1e308"
	default:
		return ""
	}
}
