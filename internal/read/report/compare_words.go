package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/run/results"
)

// Document describes the result in words and tables.
func (r *CompareResult) Document(tool string) *Document {
	d := &Document{Title: compareTitle(r), Made: tool}
	d.Sections = append(d.Sections, r.words(), r.table())
	return d
}

func compareTitle(r *CompareResult) string {
	if len(r.Groups) == 2 {
		return r.Groups[0] + " and " + r.Groups[1]
	}
	if !slices.Contains(results.OwnFactors(), r.By) {
		return fmt.Sprintf("%d groups by %s", len(r.Groups), strings.ReplaceAll(r.By, ",", ", "))
	}
	return fmt.Sprintf("%d %ss", len(r.Groups), r.By)
}

// maxWords is the maximum number of comparisons under one heading.
const maxWords = 12

// words returns the findings: what differs, what cannot be shown yet, and where there is no sign of a difference.
func (r *CompareResult) words() Section {
	s := Section{ID: "findings", Title: "Findings"}
	for _, note := range r.Notes {
		s.Blocks = append(s.Blocks, Block{Text: note})
	}
	all := slices.Clone(r.Comparisons)
	if r.common() != "" { // it is stated below the table
		for i := range all {
			all[i].Note = ""
		}
	}
	for _, part := range []struct {
		title string
		of    func(*Comparison) bool
		say   func(*Comparison) string
	}{
		{"Differs", (*Comparison).Differs, (*Comparison).difference},
		{"Cannot be shown yet", (*Comparison).isOpen, (*Comparison).open},
		{"No sign of a difference", func(c *Comparison) bool { return !c.Differs() && !c.isOpen() && c.More < 0 }, (*Comparison).nothing},
	} {
		var lines []string
		n := 0
		for i := range all {
			if c := &all[i]; part.of(c) {
				if n++; n <= maxWords {
					lines = append(lines, part.say(c))
				}
			}
		}
		if n > maxWords {
			lines = append(lines, fmt.Sprintf("and %d more; --all, --html, --json and --csv show them in a table", n-maxWords))
		}
		if n > 0 {
			s.Blocks = append(s.Blocks, Block{Title: part.title, List: lines})
		}
	}
	return s
}

// subject names what is compared: points, or points of small.
func (c *Comparison) subject() string {
	if c.Of == "" {
		return c.Score
	}
	return c.Score + " of " + c.Of
}

func (c *Comparison) difference() string {
	high, low, q := c.A, c.B, c.Difference
	meanHigh, meanLow := c.MeanA, c.MeanB
	if q.Value < 0 {
		high, low, meanHigh, meanLow = low, high, meanLow, meanHigh
		q.Value, q.Low, q.High = -q.Value, -q.High, -q.Low
	}
	return fmt.Sprintf("%s: %s is above %s, %s against %s, by %s (p %s, %s)%s",
		c.subject(), high, low, short(meanHigh.Value), short(meanLow.Value), Interval(q), below(c.Adjusted), c.basis(), c.caveat())
}

// tooFew reports whether there are too few units for any test.
func (c *Comparison) tooFew() bool { return !c.Difference.Known() || c.N < 2 }

// isOpen reports whether more episodes could show a difference.
func (c *Comparison) isOpen() bool { return !c.Differs() && (c.More > 0 || c.tooFew()) }

func (c *Comparison) open() string {
	if c.tooFew() {
		return fmt.Sprintf("%s: %s and %s: %s is too few to show a difference; play more of them%s%s", c.subject(), c.A, c.B, plural(c.N, c.unit()), c.floor(), c.caveat())
	}
	return fmt.Sprintf("%s: %s and %s, %s against %s: a difference of %s so far (p %s, %s)%s%s%s",
		c.subject(), c.A, c.B, short(c.MeanA.Value), short(c.MeanB.Value), Interval(c.Difference), below(c.Adjusted), c.basis(), c.needed(), c.floor(), c.caveat())
}

func (c *Comparison) nothing() string {
	switch half := c.Difference.Half(); {
	case !math.IsInf(half, 0) && half != 0:
	case c.Difference.Value == 0:
		return fmt.Sprintf("%s: %s and %s are exactly the same in all of %s%s", c.subject(), c.A, c.B, plural(c.N, c.unit()), c.caveat())
	default:
		return fmt.Sprintf("%s: %s and %s, %s against %s: the same difference in all of %s, so its spread is unknown (%s)%s%s",
			c.subject(), c.A, c.B, short(c.MeanA.Value), short(c.MeanB.Value), plural(c.N, c.unit()), c.basis(), c.floor(), c.caveat())
	}
	return fmt.Sprintf("%s: %s and %s, %s against %s: no difference larger than %s is likely, %s so far (p %s, %s)%s%s",
		c.subject(), c.A, c.B, short(c.MeanA.Value), short(c.MeanB.Value), short(max(-c.Difference.Low, c.Difference.High)), Interval(c.Difference),
		below(c.Adjusted), c.basis(), c.beyond(), c.caveat())
}

// floor states how many units an exact test needs to find anything, if there are fewer.
func (c *Comparison) floor() string {
	if c.Least == 0 {
		return ""
	}
	return fmt.Sprintf("; no difference can be shown with fewer than %s", plural(c.Least, c.unit()))
}

// beyond states that the difference is too small to be shown with a reasonable number of units.
func (c *Comparison) beyond() string {
	if c.Beyond == 0 {
		return ""
	}
	return fmt.Sprintf("; to show a difference as small as this takes more than %s", plural(c.Beyond, c.unit()))
}

// caveat returns the end of a sentence, with the caveat and the caution if there are any.
func (c *Comparison) caveat() string {
	end := "."
	if c.Note != "" {
		end = "; " + c.Note + "."
	}
	if c.Caution != "" {
		end += " Caution: " + c.Caution + "."
	}
	return end
}

func (c *Comparison) unit() string { return cmp.Or(c.Unit, "deal") }

// basis describes the data of the test: paired, 40 deals.
func (c *Comparison) basis() string {
	if c.Paired {
		return "paired, " + plural(c.N, c.unit()) + c.played()
	}
	return "unpaired, " + plural(c.N, c.unit()) + " or more each" + c.played()
}

// played states the number of episodes, if there are more than units.
func (c *Comparison) played() string {
	if c.Played <= c.N {
		return ""
	}
	return " in " + plural(c.Played, "episode")
}

func many(n int) string {
	if n > 1_000_000 {
		return "more than a million"
	}
	return text.GroupDigits(n)
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return many(n) + " " + what + "s"
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// below formats P with its sign: = 0.013, < 0.001.
func below(p float64) string {
	switch text := pValue(p).Text; {
	case math.IsNaN(p):
		return "unknown"
	case strings.HasPrefix(text, "<"):
		return text
	default:
		return "= " + text
	}
}

// table returns every comparison with its numbers.
func (r *CompareResult) table() Section {
	// The findings say the same in sentences: a terminal shows the table only if it is asked for.
	t := &Table{Name: "comparisons", Title: "All comparisons", Quiet: !r.all, Grouped: true, Track: 6, Filter: len(r.Comparisons) > 30, Columns: []Column{
		KeyColumn("score"), KeyColumn("of"), KeyColumn("a"), KeyColumn("b"), NumberColumn("mean of a"), NumberColumn("mean of b"),
		NumberColumn("difference"), NumberColumn("effect"), detail(NumberColumn("p")), NumberColumn("adjusted p"), NumberColumn("n"), textColumn("unit"), textColumn("test"), textColumn("finding"), NumberColumn("more"), NumberColumn("needs at least"), NumberColumn("episodes"), NumberColumn("failed of a"), NumberColumn("failed of b"), textColumn("caution"), detail(textColumn("note")),
	}}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		t.Rows = append(t.Rows, []Cell{
			Word(c.Score), Word(c.Of), Word(c.A), Word(c.B), Quantity(c.MeanA), Quantity(c.MeanB),
			Quantity(c.Difference), Quantity(c.Effect), pValue(c.Test.P), pValue(c.Adjusted), whole(c.N),
			Word(c.unit() + "s"), Word(c.how()), Word(c.finding()), c.more(), countOrDash(c.Least), whole(c.Played), countOrDash(c.FailedA), countOrDash(c.FailedB), Word(c.Caution), Word(c.Note),
		})
	}
	if !r.all && len(t.Rows) > maxComparisons {
		t.MaxRows, t.Rest = maxComparisons, fmt.Sprintf("%s more comparisons, %s without a finding. --all shows them; --json and --csv have them all.",
			text.GroupDigits(len(t.Rows)-maxComparisons), r.without())
	}
	t.Regroup()
	return Section{ID: "comparisons", Title: "Comparisons", Blocks: []Block{{Table: t}, {Title: "How they were computed", List: r.method()}}}
}

// without returns how many of the comparisons that are not shown have no finding.
func (r *CompareResult) without() string {
	n := 0
	for i := range r.Comparisons[maxComparisons:] {
		if !r.Comparisons[maxComparisons+i].Differs() {
			n++
		}
	}
	if n == len(r.Comparisons)-maxComparisons {
		return "all"
	}
	return text.GroupDigits(n)
}

func detail(c Column) Column {
	c.Detail = true
	return c
}

func (c *Comparison) how() string {
	if c.Paired {
		return "paired, " + c.Test.Method
	}
	return "unpaired, " + c.Test.Method
}

func (c *Comparison) finding() string {
	switch {
	case c.Differs() && c.Difference.Value > 0:
		return "a higher"
	case c.Differs():
		return "b higher"
	case c.isOpen():
		return "open"
	default:
		return "none seen"
	}
}

func (c *Comparison) more() Cell {
	if c.More <= 0 {
		return Cell{Text: "–"}
	}
	return Cell{Text: many(c.More), Value: c.More}
}

// method describes how the comparisons were computed.
func (r *CompareResult) method() []string {
	correction := map[string]string{
		holm: "adjusted by Holm's method, so that even one false finding is unlikely",
		bh:   "adjusted by Benjamini and Hochberg's method, so that few of the findings are false",
		none: "not adjusted: about one in twenty comparisons without a difference will look like a finding",
	}[r.Correct]
	p := fmt.Sprintf("P is %s, over %s.", correction, plural(len(r.Comparisons), "comparison"))
	if r.Correct != none {
		p += " Intervals are of 95% each, and not adjusted."
	}
	return append(append(r.pairs(), r.Copies...), p)
}

// pairs states how many comparisons are paired, and what counts once.
func (r *CompareResult) pairs() []string {
	paired := 0
	units := map[string]bool{}
	for i := range r.Comparisons {
		units[r.Comparisons[i].unit()] = true
		if r.Comparisons[i].Paired {
			paired++
		}
	}
	how := fmt.Sprintf("%d of %s are paired, the others are not", paired, plural(len(r.Comparisons), "comparison"))
	switch paired {
	case len(r.Comparisons):
		how = "All comparisons are paired"
	case 0:
		how = "No comparison is paired"
	}
	list := []string{fmt.Sprintf("%s. Each %s counts once. A difference is the mean of A minus the mean of B.", how, strings.Join(slices.Sorted(maps.Keys(units)), ", or each "))}
	if note := r.common(); note != "" {
		list = append(list, strings.ToUpper(note[:1])+note[1:]+".")
	}
	return list
}

// common returns the note that all comparisons have, or "".
func (r *CompareResult) common() string {
	if len(r.Comparisons) < 2 || slices.ContainsFunc(r.Comparisons, func(c Comparison) bool { return c.Note != r.Comparisons[0].Note }) {
		return ""
	}
	return r.Comparisons[0].Note
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return text.GroupDigits(n) + " " + what + "s"
}
