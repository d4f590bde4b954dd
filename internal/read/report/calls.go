package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/price"
	"parley/internal/kit/sketch"
	"parley/internal/kit/text"
	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
)

// calls returns the section on calls: tokens, cost and failures.
func calls(r *results.Run) Section {
	s := Section{ID: "calls", Title: "Calls, tokens and cost"}
	if len(r.Accounts) == 0 {
		s.Text = "No calls were made yet."
		return s
	}
	s.Blocks = append(s.Blocks, costs(r)...)
	s.Blocks = append(s.Blocks, answers(r))
	if len(r.Failures) > 0 {
		s.Blocks = append(s.Blocks, failures(r))
	}
	if len(r.Batches) > 0 {
		s.Blocks = append(s.Blocks, batches(r))
	}
	return s
}

// answers returns a table of how well models answered: failures, retries and repairs.
func answers(r *results.Run) Block {
	t := &Table{Name: "answers", Title: "Answers by model", Track: -1, Columns: []Column{
		KeyColumn("model"), NumberColumn("asked"), NumberColumn("failed"), NumberColumn("retried"), NumberColumn("cut off"), NumberColumn("refused"),
		NumberColumn("structured"), NumberColumn("tolerant"), NumberColumn("repaired"), NumberColumn("malformed"),
	}}
	for _, a := range r.Rollup(func(k results.AccountKey) results.AccountKey { return results.AccountKey{Kind: k.Kind, Model: k.Model} }) {
		if a.Kind != journal.Ask {
			continue
		}
		structured := a.Native + a.Tolerant + a.Repaired
		t.Rows = append(t.Rows, []Cell{
			Word(a.Model), whole(a.Calls), share(a.FailedCalls, a.Calls), share(a.Retried, a.Calls), share(a.Cut, a.Calls), share(a.Refused, a.Calls),
			countOrDash(structured), share(a.Tolerant, structured), share(a.Repaired, structured), share(a.Invalid, a.Calls),
		})
	}
	return Block{Title: "Answers by model", Table: t, Caption: "Cut off: the answer reached the token limit. A structured answer that does not match the schema is read tolerantly, or asked for again (repaired), or counted as malformed."}
}

// share is a count with its share of the whole.
func share(n, of int) Cell {
	if n == 0 || of == 0 {
		return Cell{Text: "–", Value: n}
	}
	return Cell{Text: fmt.Sprintf("%s (%.3g%%)", text.GroupDigits(n), 100*float64(n)/float64(of)), Value: n}
}

func failures(r *results.Run) Block {
	t := &Table{Name: "failures", Title: "Failed calls by kind", Track: -1, Columns: []Column{KeyColumn("model"), KeyColumn("kind"), NumberColumn("calls"), NumberColumn("status"), textColumn("the first one said"), textColumn("what to do"), textColumn("episodes")}}
	for _, f := range r.Failures {
		status := Cell{Text: "–"}
		if f.Status != 0 {
			status = Cell{Text: fmt.Sprint(f.Status), Value: f.Status}
		}
		t.Rows = append(t.Rows, []Cell{Word(f.Model), Word(strings.ReplaceAll(string(f.Kind), "_", " ")), whole(f.Calls), status, Word(text.Excerpt(f.Example, 300)), Word(f.Remedy), episodeCell(f.Episodes)})
	}
	return Block{Title: "Failed calls by kind", Table: t}
}

// maxBatches is the maximum number of rows in the table of batches.
const maxBatches = 200

func batches(r *results.Run) Block {
	t := &Table{Name: "batches", Title: "Batches", Track: -1, Quiet: true, Columns: []Column{textColumn("sent"), KeyColumn("model"), NumberColumn("requests"), NumberColumn("worst cost"), NumberColumn("took"), textColumn("closed")}}
	b := Block{Title: "Batches", Table: t}
	for i, k := range r.Batches {
		if i == maxBatches {
			b.Caption = fmt.Sprintf("The first %d of %s.", maxBatches, text.GroupDigits(len(r.Batches)))
			break
		}
		took, closed := Cell{Text: "–"}, Cell{Text: "open"}
		if k.Closed != "" {
			took, closed = seconds(k.Took), Word(k.Closed)
		}
		t.Rows = append(t.Rows, []Cell{Word(stamp(k.Sent)), Word(k.Model), whole(k.Lines), money(k.Worst), took, closed})
	}
	return b
}

// costing is a way to sum calls, tokens and money.
type costing struct {
	name, title string
	quiet       bool
	columns     []string
	of          func(results.AccountKey) []string // the cells of columns
	by          func(results.AccountKey) results.AccountKey
}

func costings() []costing {
	return []costing{
		{
			name: "calls", title: "By agent and model", columns: []string{"agent", "model"},
			of: func(k results.AccountKey) []string { return []string{k.Agent, modelOf(k)} },
			by: func(k results.AccountKey) results.AccountKey {
				return results.AccountKey{Kind: k.Kind, Agent: k.Agent, Model: k.Model}
			},
		},
		{
			name: "calls-by-seat", title: "By seat", columns: []string{"seat"},
			of: func(k results.AccountKey) []string { return []string{k.Seat} },
			by: func(k results.AccountKey) results.AccountKey { return results.AccountKey{Kind: k.Kind, Seat: k.Seat} },
		},
		{
			name: "calls-by-label", title: "By purpose", columns: []string{"for"},
			of: func(k results.AccountKey) []string { return []string{k.Label} },
			by: func(k results.AccountKey) results.AccountKey { return results.AccountKey{Kind: k.Kind, Label: k.Label} },
		},
		{
			name: "calls-by-seat-and-label", title: "By seat and purpose", quiet: true, columns: []string{"seat", "for"},
			of: func(k results.AccountKey) []string { return []string{k.Seat, k.Label} },
			by: func(k results.AccountKey) results.AccountKey {
				return results.AccountKey{Kind: k.Kind, Seat: k.Seat, Label: k.Label}
			},
		},
	}
}

func modelOf(k results.AccountKey) string {
	if k.Kind == journal.Ask {
		return k.Model
	}
	return "(" + k.Kind + ")"
}

// costs returns the tables of costs: by agent and model, by seat, and by purpose. A table with a single row
// besides the first is left out, because it repeats the total.
func costs(r *results.Run) (blocks []Block) {
	all := r.Total()
	for i, c := range costings() {
		accounts := slices.DeleteFunc(r.Rollup(c.by), func(a results.KeyedAccount) bool { return i > 0 && a.Kind != journal.Ask })
		if i > 0 && len(accounts) < 2 {
			continue
		}
		if len(c.columns) == 1 { // the most expensive first
			slices.SortStableFunc(accounts, func(a, b results.KeyedAccount) int {
				return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(tokens(b.Account), tokens(a.Account)))
			})
		}
		t := c.table(accounts, all)
		caption := c.caption(i, all)
		if i == 0 {
			used := map[string]llm.Usage{}
			for _, a := range accounts {
				used[a.Model] = used[a.Model].Plus(a.Usage)
			}
			caption = strings.TrimSpace(caption + " " + price.Embedded().Savings(used))
		}
		blocks = append(blocks, Block{Title: c.title, Table: t, Folded: c.quiet, Caption: caption})
	}
	return blocks
}

func (c costing) caption(i int, all results.Account) string {
	switch {
	case i > 0:
		return ""
	case all.Cost > 0:
		return "The share is of the cost. Answers from a cache or copied from another run cost nothing."
	default:
		return "The share is of all tokens: no cost was recorded."
	}
}

func (c costing) table(accounts []results.KeyedAccount, all results.Account) *Table {
	t := &Table{Name: c.name, Title: c.title, Track: -1, Quiet: c.quiet, Grouped: c.quiet, Filter: len(accounts) > 30}
	for _, name := range c.columns {
		t.Columns = append(t.Columns, KeyColumn(name))
	}
	t.Columns = append(t.Columns,
		NumberColumn("calls"), NumberColumn("cached"), NumberColumn("tokens in"), NumberColumn("of them cached"), NumberColumn("tokens out"),
		NumberColumn("of them thought"), NumberColumn("cost"), NumberColumn("share"), NumberColumn("cost a call"))
	for _, a := range accounts {
		var row []Cell
		for _, text := range c.of(a.AccountKey) {
			row = append(row, Word(text))
		}
		t.Rows = append(t.Rows, append(row,
			whole(a.Replies()), countOrDash(a.Reused), countOrDash(a.Usage.Input), countOrDash(a.Usage.Cached), countOrDash(a.Usage.Output),
			countOrDash(a.Usage.Reasoning), money(a.Cost), shareOfCost(a.Account, all), money(each(a.Account))))
	}
	return t
}

// shareOfCost is the share of the total cost, or of the tokens if no cost was recorded.
func shareOfCost(a, all results.Account) Cell {
	x, of := a.Cost.Dollars(), all.Cost.Dollars()
	if of == 0 {
		x, of = float64(tokens(a)), float64(tokens(all))
	}
	if x == 0 {
		return Cell{Text: "–", Value: 0.0}
	}
	return Cell{Text: fmt.Sprintf("%.1f%%", 100*x/of), Value: x / of}
}

func each(a results.Account) llm.Money {
	if n := a.Replies() - a.Reused; n > 0 {
		return a.Cost / llm.Money(n)
	}
	return 0
}

func tokens(a results.Account) int { return a.Usage.Total() }

// times returns the section on speed: how long answers took, and throughput over time.
func times(r *results.Run) Section {
	s := Section{ID: "times", Title: "Speed"}
	if len(r.Times) > 0 {
		t := &Table{Name: "latency-distribution", Title: "Distribution of time to answer", Track: -1, Quiet: true, Columns: []Column{
			KeyColumn("model"), NumberColumn("from"), NumberColumn("to"), NumberColumn("answers"),
		}}
		s.Blocks = append(s.Blocks, latency(r))
		for i := range r.Times {
			s.Blocks = append(s.Blocks, distribution(&r.Times[i], t))
		}
		s.Blocks = append(s.Blocks, Block{Title: "Numbers of the distributions", Table: t, Folded: true})
	}
	if len(r.Timeline.Parts) > 1 {
		s.Blocks = append(s.Blocks, timeline(r)...)
	}
	if len(s.Blocks) == 0 {
		s.Text = "No calls were made yet."
	}
	return s
}

func latency(r *results.Run) Block {
	t := &Table{Name: "latency", Title: "Time to answer", Track: -1, Columns: []Column{
		KeyColumn("model"), NumberColumn("answers"), NumberColumn("mean"), NumberColumn("median"), NumberColumn("90%"), NumberColumn("99%"), NumberColumn("longest"), NumberColumn("first byte, median"), NumberColumn("waited, median"), NumberColumn("waited, 99%"),
	}}
	for i := range r.Times {
		m := &r.Times[i]
		first := Cell{Text: "–"}
		if m.FirstByte.Count() > 0 {
			first = seconds(m.FirstByte.Quantile(0.5))
		}
		t.Rows = append(t.Rows, []Cell{
			Word(m.Model), whole(int(m.Latency.Count())), seconds(m.Latency.Mean()), seconds(m.Latency.Quantile(0.5)), seconds(m.Latency.Quantile(0.9)),
			seconds(m.Latency.Quantile(0.99)), seconds(m.Latency.Max()), first, seconds(m.Waited.Quantile(0.5)), seconds(m.Waited.Quantile(0.99)),
		})
	}
	return Block{Title: "Time to answer", Table: t, Caption: "From sending the last attempt of a call to its complete answer; percentiles are within 3%. Waited: in queues and pauses before, over all attempts. Answers from a cache do not count."}
}

// distribution returns a histogram of the times to answer of a model, and adds them to t.
func distribution(m *results.ModelTimes, t *Table) Block {
	parts := map[int]float64{} // eight bins for each doubling: more would be noisy, fewer would hide a second peak
	first, last := math.MaxInt, math.MinInt
	m.Latency.Buckets(func(low, high time.Duration, n int) {
		middle := math.Sqrt(max(low, time.Microsecond).Seconds() * high.Seconds())
		i := int(math.Floor(math.Log2(middle) * 8))
		parts[i] += float64(n)
		first, last = min(first, i), max(last, i)
	})
	edge := func(i int) float64 { return math.Exp2(float64(i) / 8) }
	var edges, counts []float64
	for i := first; i <= last; i++ {
		edges, counts = append(edges, edge(i)), append(counts, parts[i])
		t.Rows = append(t.Rows, []Cell{Word(m.Model), span(edge(i)), span(edge(i + 1)), whole(int(parts[i]))})
	}
	edges = append(edges, edge(last+1))
	b := Block{Title: "Distribution of time to answer · " + m.Model}
	if len(counts) > 0 {
		p := chart.Plot{Label: "histogram of time to answer of " + m.Model, X: "time to answer", Y: "answers", Height: 190, XTick: SecondsTick}
		b.Drawing = p.Histogram(edges, counts, quantileMarks(&m.Latency))
	}
	return b
}

func span(s float64) Cell {
	return seconds(time.Duration(s * float64(time.Second)))
}

func quantileMarks(s *sketch.Sketch) []chart.Mark {
	return []chart.Mark{{X: s.Quantile(0.5).Seconds(), Name: "median"}, {X: s.Quantile(0.99).Seconds(), Name: "99%"}}
}

// timeline returns throughput over the time played, and cost if there is any.
func timeline(r *results.Run) []Block {
	line := r.Timeline
	width := line.Width.Seconds()
	t := &Table{Name: "timeline", Title: "Over time", Track: -1, Quiet: true, Columns: []Column{NumberColumn("from"), NumberColumn("calls"), NumberColumn("failed"), NumberColumn("tokens"), NumberColumn("cost")}}
	var rates, spent []float64
	total := 0.0
	for i, p := range line.Parts {
		rates = append(rates, float64(p.Calls)/width)
		total += p.Cost.Dollars()
		spent = append(spent, total)
		t.Rows = append(t.Rows, []Cell{seconds(time.Duration(i) * line.Width), whole(p.Calls), countOrDash(p.FailedCalls), whole(p.Usage.Total()), money(p.Cost)})
	}
	p := chart.Plot{Label: "answers a second over the time played", X: "time played", Y: "answers a second", Height: 190, XTick: SecondsTick}
	out := []Block{{
		Title: "Throughput", Table: t, Caption: "Time while no process ran is left out.",
		Drawing: p.Area(width, rates, "s0", func(i int) string {
			return fmt.Sprintf("%s to %s: %s answers, %s failed", SecondsTick(float64(i)*width), SecondsTick(float64(i+1)*width), text.GroupDigits(line.Parts[i].Calls), text.GroupDigits(line.Parts[i].FailedCalls))
		}),
	}}
	if total > 0 {
		p := chart.Plot{Label: "money spent over the time played", X: "time played", Y: "dollars spent", Height: 190, XTick: SecondsTick, YTick: func(x float64) string { return "$" + chart.Tick(x) }}
		out = append(out, Block{Title: "Cost over time", Drawing: p.Area(width, spent, "s1", func(i int) string {
			return fmt.Sprintf("after %s: $%.4g", SecondsTick(float64(i+1)*width), spent[i])
		})})
	}
	return out
}
