package report

import (
	"fmt"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/report/page"
	"parley/internal/run/results"
)

// calls returns the section on calls: tokens, cost and failures.
func calls(r *results.Run) page.Section {
	s := page.Section{ID: "calls", Title: "Calls, tokens and cost"}
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
func answers(r *results.Run) page.Block {
	t := &page.Table{Name: "answers", Title: "Answers by model", Track: -1, Columns: []page.Column{
		page.Key("model"), page.Number("asked"), page.Number("failed"), page.Number("retried"), page.Number("cut off"), page.Number("refused"),
		page.Number("structured"), page.Number("tolerant"), page.Number("repaired"), page.Number("malformed"),
	}}
	for _, a := range r.Rollup(func(k results.Key) results.Key { return results.Key{Kind: k.Kind, Model: k.Model} }) {
		if a.Kind != "ask" {
			continue
		}
		structured := a.Native + a.Tolerant + a.Repaired
		t.Rows = append(t.Rows, []page.Cell{
			page.Word(a.Model), page.Whole(a.Calls), share(a.Failed, a.Calls), share(a.Retried, a.Calls), share(a.Cut, a.Calls), share(a.Refused, a.Calls),
			page.Some(structured), share(a.Tolerant, structured), share(a.Repaired, structured), share(a.Invalid, a.Calls),
		})
	}
	return page.Block{Title: "Answers by model", Table: t, Caption: "Cut off: the answer reached the token limit. A structured answer that does not match the schema is read tolerantly, or asked for again (repaired), or counted as malformed."}
}

// share is a count with its share of the whole.
func share(n, of int) page.Cell {
	if n == 0 || of == 0 {
		return page.Cell{Text: "–", Value: n}
	}
	return page.Cell{Text: fmt.Sprintf("%s (%.3g%%)", text.GroupDigits(n), 100*float64(n)/float64(of)), Value: n}
}

func failures(r *results.Run) page.Block {
	t := &page.Table{Name: "failures", Title: "Failed calls by kind", Track: -1, Columns: []page.Column{page.Key("model"), page.Key("kind"), page.Number("calls"), page.Number("status"), page.Words("the first one said"), page.Words("what to do")}}
	for _, f := range r.Failures {
		status := page.Cell{Text: "–"}
		if f.Status != 0 {
			status = page.Cell{Text: fmt.Sprint(f.Status), Value: f.Status}
		}
		t.Rows = append(t.Rows, []page.Cell{page.Word(f.Model), page.Word(strings.ReplaceAll(string(f.Kind), "_", " ")), page.Whole(f.Calls), status, page.Word(text.Excerpt(f.Example, 300)), page.Word(f.Remedy)})
	}
	return page.Block{Title: "Failed calls by kind", Table: t}
}

// maxBatches is the maximum number of rows in the table of batches.
const maxBatches = 200

func batches(r *results.Run) page.Block {
	t := &page.Table{Name: "batches", Title: "Batches", Track: -1, Quiet: true, Columns: []page.Column{page.Words("sent"), page.Key("model"), page.Number("requests"), page.Number("worst cost"), page.Number("took"), page.Words("closed")}}
	b := page.Block{Title: "Batches", Table: t}
	for i, k := range r.Batches {
		if i == maxBatches {
			b.Caption = fmt.Sprintf("The first %d of %s.", maxBatches, text.GroupDigits(len(r.Batches)))
			break
		}
		took, closed := page.Cell{Text: "–"}, page.Cell{Text: "open"}
		if k.Closed != "" {
			took, closed = page.Seconds(k.Took), page.Word(k.Closed)
		}
		t.Rows = append(t.Rows, []page.Cell{page.Word(stamp(k.Sent)), page.Word(k.Model), page.Whole(k.Lines), page.Money(k.Worst), took, closed})
	}
	return b
}
