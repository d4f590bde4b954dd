package report

import (
	"fmt"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/run/results"
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
		Key("model"), Number("asked"), Number("failed"), Number("retried"), Number("cut off"), Number("refused"),
		Number("structured"), Number("tolerant"), Number("repaired"), Number("malformed"),
	}}
	for _, a := range r.Rollup(func(k results.Key) results.Key { return results.Key{Kind: k.Kind, Model: k.Model} }) {
		if a.Kind != "ask" {
			continue
		}
		structured := a.Native + a.Tolerant + a.Repaired
		t.Rows = append(t.Rows, []Cell{
			Word(a.Model), whole(a.Calls), share(a.Failed, a.Calls), share(a.Retried, a.Calls), share(a.Cut, a.Calls), share(a.Refused, a.Calls),
			pageSome(structured), share(a.Tolerant, structured), share(a.Repaired, structured), share(a.Invalid, a.Calls),
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
	t := &Table{Name: "failures", Title: "Failed calls by kind", Track: -1, Columns: []Column{Key("model"), Key("kind"), Number("calls"), Number("status"), pageWords("the first one said"), pageWords("what to do")}}
	for _, f := range r.Failures {
		status := Cell{Text: "–"}
		if f.Status != 0 {
			status = Cell{Text: fmt.Sprint(f.Status), Value: f.Status}
		}
		t.Rows = append(t.Rows, []Cell{Word(f.Model), Word(strings.ReplaceAll(string(f.Kind), "_", " ")), whole(f.Calls), status, Word(text.Excerpt(f.Example, 300)), Word(f.Remedy)})
	}
	return Block{Title: "Failed calls by kind", Table: t}
}

// maxBatches is the maximum number of rows in the table of batches.
const maxBatches = 200

func batches(r *results.Run) Block {
	t := &Table{Name: "batches", Title: "Batches", Track: -1, Quiet: true, Columns: []Column{pageWords("sent"), Key("model"), Number("requests"), Number("worst cost"), Number("took"), pageWords("closed")}}
	b := Block{Title: "Batches", Table: t}
	for i, k := range r.Batches {
		if i == maxBatches {
			b.Caption = fmt.Sprintf("The first %d of %s.", maxBatches, text.GroupDigits(len(r.Batches)))
			break
		}
		took, closed := Cell{Text: "–"}, Cell{Text: "open"}
		if k.Closed != "" {
			took, closed = pageSeconds(k.Took), Word(k.Closed)
		}
		t.Rows = append(t.Rows, []Cell{Word(stamp(k.Sent)), Word(k.Model), whole(k.Lines), money(k.Worst), took, closed})
	}
	return b
}
