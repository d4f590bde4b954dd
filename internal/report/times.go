package report

import (
	"fmt"
	"math"
	"time"

	"parley/internal/kit/sketch"
	"parley/internal/kit/text"
	"parley/internal/report/chart"
	"parley/internal/report/page"
	"parley/internal/run/results"
)

// times returns the section on speed: how long answers took, and throughput over time.
func times(r *results.Run) page.Section {
	s := page.Section{ID: "times", Title: "Speed"}
	if len(r.Times) > 0 {
		t := &page.Table{Name: "latency-distribution", Title: "Distribution of time to answer", Track: -1, Quiet: true, Columns: []page.Column{
			page.Key("model"), page.Number("from"), page.Number("to"), page.Number("answers"),
		}}
		s.Blocks = append(s.Blocks, latency(r))
		for i := range r.Times {
			s.Blocks = append(s.Blocks, distribution(&r.Times[i], t))
		}
		s.Blocks = append(s.Blocks, page.Block{Title: "Numbers of the distributions", Table: t, Folded: true})
	}
	if len(r.Timeline.Parts) > 1 {
		s.Blocks = append(s.Blocks, timeline(r)...)
	}
	if len(s.Blocks) == 0 {
		s.Text = "No calls were made yet."
	}
	return s
}

func latency(r *results.Run) page.Block {
	t := &page.Table{Name: "latency", Title: "Time to answer", Track: -1, Columns: []page.Column{
		page.Key("model"), page.Number("answers"), page.Number("mean"), page.Number("median"), page.Number("90%"), page.Number("99%"), page.Number("longest"), page.Number("first byte, median"), page.Number("waited, median"), page.Number("waited, 99%"),
	}}
	for i := range r.Times {
		m := &r.Times[i]
		first := page.Cell{Text: "–"}
		if m.FirstByte.Count() > 0 {
			first = page.Seconds(m.FirstByte.Quantile(0.5))
		}
		t.Rows = append(t.Rows, []page.Cell{
			page.Word(m.Model), page.Whole(int(m.Latency.Count())), page.Seconds(m.Latency.Mean()), page.Seconds(m.Latency.Quantile(0.5)), page.Seconds(m.Latency.Quantile(0.9)),
			page.Seconds(m.Latency.Quantile(0.99)), page.Seconds(m.Latency.Max()), first, page.Seconds(m.Waited.Quantile(0.5)), page.Seconds(m.Waited.Quantile(0.99)),
		})
	}
	return page.Block{Title: "Time to answer", Table: t, Caption: "From sending the last attempt of a call to its complete answer; percentiles are within 3%. Waited: in queues and pauses before, over all attempts. Answers from a cache do not count."}
}

// distribution returns a histogram of the times to answer of a model, and adds them to t.
func distribution(m *results.ModelTimes, t *page.Table) page.Block {
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
		t.Rows = append(t.Rows, []page.Cell{page.Word(m.Model), span(edge(i)), span(edge(i + 1)), page.Whole(int(parts[i]))})
	}
	edges = append(edges, edge(last+1))
	b := page.Block{Title: "Distribution of time to answer · " + m.Model}
	if len(counts) > 0 {
		p := chart.Plot{Label: "histogram of time to answer of " + m.Model, X: "time to answer", Y: "answers", Height: 190, XTick: page.SecondsTick}
		b.Drawing = p.Histogram(edges, counts, quantileMarks(&m.Latency))
	}
	return b
}

func span(seconds float64) page.Cell {
	return page.Seconds(time.Duration(seconds * float64(time.Second)))
}

func quantileMarks(s *sketch.Sketch) []chart.Mark {
	return []chart.Mark{{X: s.Quantile(0.5).Seconds(), Name: "median"}, {X: s.Quantile(0.99).Seconds(), Name: "99%"}}
}

// timeline returns throughput over the time played, and cost if there is any.
func timeline(r *results.Run) []page.Block {
	line := r.Timeline
	width := line.Width.Seconds()
	t := &page.Table{Name: "timeline", Title: "Over time", Track: -1, Quiet: true, Columns: []page.Column{page.Number("from"), page.Number("calls"), page.Number("failed"), page.Number("tokens"), page.Number("cost")}}
	var rates, spent []float64
	total := 0.0
	for i, p := range line.Parts {
		rates = append(rates, float64(p.Calls)/width)
		total += p.Cost.Dollars()
		spent = append(spent, total)
		t.Rows = append(t.Rows, []page.Cell{page.Seconds(time.Duration(i) * line.Width), page.Whole(p.Calls), page.Some(p.Failed), page.Whole(p.Tokens), page.Money(p.Cost)})
	}
	p := chart.Plot{Label: "answers a second over the time played", X: "time played", Y: "answers a second", Height: 190, XTick: page.SecondsTick}
	out := []page.Block{{
		Title: "Throughput", Table: t, Caption: "Time while no process ran is left out.",
		Drawing: p.Area(width, rates, "s0", func(i int) string {
			return fmt.Sprintf("%s to %s: %s answers, %s failed", page.SecondsTick(float64(i)*width), page.SecondsTick(float64(i+1)*width), text.GroupDigits(line.Parts[i].Calls), text.GroupDigits(line.Parts[i].Failed))
		}),
	}}
	if total > 0 {
		p := chart.Plot{Label: "money spent over the time played", X: "time played", Y: "dollars spent", Height: 190, XTick: page.SecondsTick, YTick: func(x float64) string { return "$" + chart.Tick(x) }}
		out = append(out, page.Block{Title: "Cost over time", Drawing: p.Area(width, spent, "s1", func(i int) string {
			return fmt.Sprintf("after %s: $%.4g", page.SecondsTick(float64(i+1)*width), spent[i])
		})})
	}
	return out
}
