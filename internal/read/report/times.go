package report

import (
	"fmt"
	"math"
	"time"

	"parley/internal/kit/sketch"
	"parley/internal/kit/text"
	"parley/internal/read/chart"
	"parley/internal/run/results"
)

// times returns the section on speed: how long answers took, and throughput over time.
func times(r *results.Run) Section {
	s := Section{ID: "times", Title: "Speed"}
	if len(r.Times) > 0 {
		t := &Table{Name: "latency-distribution", Title: "Distribution of time to answer", Track: -1, Quiet: true, Columns: []Column{
			Key("model"), Number("from"), Number("to"), Number("answers"),
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
		Key("model"), Number("answers"), Number("mean"), Number("median"), Number("90%"), Number("99%"), Number("longest"), Number("first byte, median"), Number("waited, median"), Number("waited, 99%"),
	}}
	for i := range r.Times {
		m := &r.Times[i]
		first := Cell{Text: "–"}
		if m.FirstByte.Count() > 0 {
			first = pageSeconds(m.FirstByte.Quantile(0.5))
		}
		t.Rows = append(t.Rows, []Cell{
			Word(m.Model), whole(int(m.Latency.Count())), pageSeconds(m.Latency.Mean()), pageSeconds(m.Latency.Quantile(0.5)), pageSeconds(m.Latency.Quantile(0.9)),
			pageSeconds(m.Latency.Quantile(0.99)), pageSeconds(m.Latency.Max()), first, pageSeconds(m.Waited.Quantile(0.5)), pageSeconds(m.Waited.Quantile(0.99)),
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

func span(seconds float64) Cell {
	return pageSeconds(time.Duration(seconds * float64(time.Second)))
}

func quantileMarks(s *sketch.Sketch) []chart.Mark {
	return []chart.Mark{{X: s.Quantile(0.5).Seconds(), Name: "median"}, {X: s.Quantile(0.99).Seconds(), Name: "99%"}}
}

// timeline returns throughput over the time played, and cost if there is any.
func timeline(r *results.Run) []Block {
	line := r.Timeline
	width := line.Width.Seconds()
	t := &Table{Name: "timeline", Title: "Over time", Track: -1, Quiet: true, Columns: []Column{Number("from"), Number("calls"), Number("failed"), Number("tokens"), Number("cost")}}
	var rates, spent []float64
	total := 0.0
	for i, p := range line.Parts {
		rates = append(rates, float64(p.Calls)/width)
		total += p.Cost.Dollars()
		spent = append(spent, total)
		t.Rows = append(t.Rows, []Cell{pageSeconds(time.Duration(i) * line.Width), whole(p.Calls), pageSome(p.Failed), whole(p.Tokens), money(p.Cost)})
	}
	p := chart.Plot{Label: "answers a second over the time played", X: "time played", Y: "answers a second", Height: 190, XTick: SecondsTick}
	out := []Block{{
		Title: "Throughput", Table: t, Caption: "Time while no process ran is left out.",
		Drawing: p.Area(width, rates, "s0", func(i int) string {
			return fmt.Sprintf("%s to %s: %s answers, %s failed", SecondsTick(float64(i)*width), SecondsTick(float64(i+1)*width), text.GroupDigits(line.Parts[i].Calls), text.GroupDigits(line.Parts[i].Failed))
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
