package report

import (
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/llm"
	"parley/stats"
	"parley/world"
	"parley/world/exhibit"
)

// KeyColumn returns a column that names the row.
func KeyColumn(name string) Column { return Column{Name: name, Key: true} }

// NumberColumn returns a column of numbers.
func NumberColumn(name string) Column { return Column{Name: name, Number: true} }

// textColumn returns a column of texts.
func textColumn(name string) Column { return Column{Name: name} }

// Word returns a cell with a text.
func Word(s string) Cell { return Cell{Text: s, Value: s} }

// whole returns a cell with a count.
func whole(n int) Cell { return Cell{Text: text.GroupDigits(n), Value: n} }

// countOrDash returns a cell with a count, and a dash for 0.
func countOrDash(n int) Cell {
	if n == 0 {
		return Cell{Text: "–", Value: 0}
	}
	return whole(n)
}

// Cost formats what something cost. It is a dash for 0: a model without a known price records nothing.
func Cost(m llm.Money) string {
	if m == 0 {
		return "–"
	}
	return Dollars(m)
}

// money returns a cell with what something cost.
func money(m llm.Money) Cell { return Cell{Text: Cost(m), Value: m} }

// pValue returns a cell with the pValue of a test, to three decimals.
func pValue(p float64) Cell {
	switch {
	case math.IsNaN(p):
		return Cell{Text: "–"}
	case p < 0.001:
		return Cell{Text: "< 0.001", Value: p}
	default:
		return Cell{Text: strconv.FormatFloat(p, 'f', 3, 64), Value: p}
	}
}

// Real returns a cell with any number.
func Real(x float64) Cell {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Cell{Text: "–"}
	}
	return Cell{Text: digits(x), Value: x}
}

// seconds returns a cell with a duration, whose value is in seconds.
func seconds(d time.Duration) Cell { return Cell{Text: Duration(d), Value: d.Seconds()} }

// Quantity returns a cell with a number and its interval.
func Quantity(q statmath.Quantity) Cell { return Cell{Text: Interval(q), Value: q} }

// Caution adds a column with a caution to each table of sections that has a number with an interval.
func Caution(sections []Section, caution string) {
	for _, s := range sections {
		for _, b := range s.Blocks {
			if b.Table != nil {
				b.Table.caution(caution)
			}
		}
	}
}

func (t *Table) caution(text string) {
	estimate := func(c Cell) bool { _, ok := c.Value.(statmath.Quantity); return ok }
	if !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return slices.ContainsFunc(row, estimate) }) {
		return
	}
	t.Columns = append(slices.Clip(t.Columns), textColumn("caution"))
	for i, row := range t.Rows {
		t.Rows[i] = append(slices.Clip(row), Word(text))
	}
}

// sampleEstimate returns the estimate of a sample. A share is from 0 to 1.
func sampleEstimate(s *world.Sample, share bool) statmath.Quantity {
	if s == nil {
		return statmath.Unknown(0, "")
	}
	if share && s.Bounds.Any() {
		s.Bounds = world.Share()
	}
	return s.Estimate(results.Confidence)
}

// Interval formats a number with its interval: 0.42 [0.35, 0.49].
func Interval(q statmath.Quantity) string {
	value, interval := ValueAndInterval(q)
	return strings.TrimSuffix(value+" "+interval, " ")
}

// ValueAndInterval formats a number and its interval, which is empty if the number is unknown.
func ValueAndInterval(q statmath.Quantity) (value, interval string) {
	if !q.Known() {
		return "–", ""
	}
	half := q.Half()
	if math.IsInf(half, 0) || math.IsNaN(half) {
		return digits(q.Value), "[" + UnknownInterval(q) + "]"
	}
	n := decimals(half)
	f := func(x float64) string { return text.Decimals(x, n) }
	return f(q.Value), fmt.Sprintf("[%s, %s]", f(q.Low), f(q.High))
}

// UnknownInterval says why an interval is unknown. Equal values show only how many others there can be.
func UnknownInterval(q statmath.Quantity) string {
	if q.Method != stats.Constant || q.N < 2 {
		return "unknown"
	}
	return fmt.Sprintf("all equal; ≤%.2g%% differ", 100*statmath.OtherShare(q.N, results.Confidence))
}

// decimals returns the number of decimals for a number that is known to ±half: usually two, so
// that numbers line up, and more or fewer for very small or large intervals.
func decimals(half float64) int {
	switch {
	case half >= 100:
		return 0
	case half >= 10:
		return 1
	case half >= 0.005 || half <= 0:
		return 2
	default:
		return min(6, -int(math.Floor(math.Log10(half))))
	}
}

// digits formats a number with four digits, or as a whole number if it has more before the point.
func digits(x float64) string {
	if whole := math.Round(x); math.Abs(x) < 1e7 && (x == whole || math.Abs(whole) >= 1000) {
		return text.GroupDigits(int(whole))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// Dollars formats an amount with its significant digits: $0.0042, $1.23, $1,234.
func Dollars(m llm.Money) string {
	d := m.Dollars()
	switch a := math.Abs(d); {
	case a >= 1000:
		return "$" + text.GroupDigits(int(math.Round(d)))
	case a >= 1 || a == 0:
		return fmt.Sprintf("$%.2f", d)
	default:
		return "$" + strconv.FormatFloat(d, 'f', min(6, 1-int(math.Floor(math.Log10(max(a, 1e-9))))), 64)
	}
}

// Duration formats a duration: 340 ms, 1.52 s, 4 min 20 s, 3 h 05 min.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// SecondsTick formats a number of seconds for an axis.
func SecondsTick(x float64) string {
	d := time.Duration(x * float64(time.Second))
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	if d >= time.Second && d < time.Minute {
		return fmt.Sprintf("%.4g s", x)
	}
	return Duration(d)
}

// ScoresText writes n scores by seat, as "first: points 3, revealed 0; second: …". score returns the seat and the
// text of one.
func ScoresText(n int, score func(i int) (seat, text string)) string {
	var b strings.Builder
	last := ""
	for i := range n {
		seat, text := score(i)
		switch {
		case i > 0 && seat == last:
			b.WriteString(", ")
		case i > 0:
			b.WriteString("; ")
		}
		if seat != "" && (i == 0 || seat != last) {
			b.WriteString(seat + ": ")
		}
		b.WriteString(text)
		last = seat
	}
	return b.String()
}

// WriteCSV writes a table. A number with an interval becomes four columns: its own, and
// those that end in _low, _high and _n. Unknown values are empty.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	spread := t.spread()
	var head []string
	for i, c := range t.Columns {
		head = append(head, c.Name)
		if spread[i] {
			head = append(head, c.Name+"_low", c.Name+"_high", c.Name+"_n")
		}
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, r := range t.Rows {
		var line []string
		for i, c := range r {
			line = append(line, plain(c.Value))
			if spread[i] {
				line = append(line, ends(c.Value)...)
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// spread reports which columns have intervals.
func (t *Table) spread() []bool {
	out := make([]bool, len(t.Columns))
	for _, r := range t.Rows {
		for i, c := range r {
			if _, ok := c.Value.(statmath.Quantity); ok {
				out[i] = true
			}
		}
	}
	return out
}

func ends(v any) []string {
	q, ok := v.(statmath.Quantity)
	if !ok {
		return []string{"", "", ""}
	}
	return []string{plain(q.Low), plain(q.High), strconv.Itoa(q.N)}
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case statmath.Quantity:
		return plain(v.Value)
	case llm.Money:
		return plain(v.Dollars())
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if exhibit.Formula(v) {
			return "'" + v
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}

// group is rows of a table that belong together, with their own scale.
type group struct {
	Name  string // empty if there is only one
	Rows  [][]Cell
	scale chart.Scale
}

// groups returns the groups of a table.
func groups(t *Table) []*group {
	if !t.Grouped {
		return []*group{{Rows: t.Rows, scale: t.scale(t.Rows)}}
	}
	var out []*group
	for _, r := range t.Rows {
		if len(out) == 0 || out[len(out)-1].Name != r[0].Text {
			out = append(out, &group{Name: r[0].Text})
		}
		g := out[len(out)-1]
		g.Rows = append(g.Rows, r)
	}
	for _, g := range out {
		g.scale = t.scale(g.Rows)
	}
	return out
}

// Axis draws the scale of the group.
func (g *group) Axis() template.HTML { return chart.Axis(g.scale) }

// scale returns the scale of the tracked column. It is that of shares if all numbers are between 0 and 1.
func (t *Table) scale(rows [][]Cell) chart.Scale {
	if t.Share || t.Track < 0 {
		return chart.Unit()
	}
	var values []float64
	unit := true
	for _, r := range rows {
		q, ok := r[t.Track].Value.(statmath.Quantity)
		if !ok || !q.Known() {
			continue
		}
		values = append(values, q.Value)
		unit = unit && q.Value >= 0 && q.Value <= 1
		for _, end := range []float64{q.Low, q.High} {
			if !math.IsInf(end, 0) {
				values = append(values, end)
				unit = unit && end >= -0.1 && end <= 1.1
			}
		}
	}
	if unit {
		return chart.Unit()
	}
	if !t.Loose {
		values = append(values, 0)
	}
	return chart.NewScale(4, values...)
}

// Sketches draws the tracked column of a table with characters, one string for each row: a dot with whiskers,
// and a line at 0 if the scale includes it.
func (t *Table) Sketches(width int) []string {
	var out []string
	if t.Track < 0 || width < 3 {
		return make([]string, len(t.Rows))
	}
	for _, g := range groups(t) {
		at := func(x float64) int { return int(math.Round(g.scale.At(x) * float64(width-1))) }
		for _, r := range g.Rows {
			q, ok := r[t.Track].Value.(statmath.Quantity)
			if !ok || !q.Known() {
				out = append(out, "")
				continue
			}
			line := make([]rune, width)
			for i := range line {
				line[i] = ' '
			}
			if g.scale.Min <= 0 && g.scale.Max >= 0 {
				line[at(0)] = '┊'
			}
			low, high := 0, width-1
			if !math.IsInf(q.Low, -1) {
				low = at(q.Low)
			}
			if !math.IsInf(q.High, 1) {
				high = at(q.High)
			}
			for i := low; i <= high && (!math.IsInf(q.Low, -1) || !math.IsInf(q.High, 1)); i++ {
				line[i] = '─'
			}
			for i, end := range map[int]float64{low: q.Low, high: q.High} {
				if !math.IsInf(end, 0) {
					line[i] = '|'
				}
			}
			line[at(q.Value)] = '●'
			out = append(out, string(line))
		}
	}
	return out
}
