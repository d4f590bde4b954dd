package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/internal/ask/price"
	"parley/internal/run/results"
	"parley/llm"
)

// costing is a way to sum calls, tokens and money.
type costing struct {
	name, title string
	quiet       bool
	columns     []string
	of          func(results.Key) []string // the cells of columns
	by          func(results.Key) results.Key
}

func costings() []costing {
	return []costing{
		{
			name: "calls", title: "By agent and model", columns: []string{"agent", "model"},
			of: func(k results.Key) []string { return []string{k.Agent, modelOf(k)} },
			by: func(k results.Key) results.Key { return results.Key{Kind: k.Kind, Agent: k.Agent, Model: k.Model} },
		},
		{
			name: "calls-by-seat", title: "By seat", columns: []string{"seat"},
			of: func(k results.Key) []string { return []string{k.Seat} },
			by: func(k results.Key) results.Key { return results.Key{Kind: k.Kind, Seat: k.Seat} },
		},
		{
			name: "calls-by-label", title: "By purpose", columns: []string{"for"},
			of: func(k results.Key) []string { return []string{k.Label} },
			by: func(k results.Key) results.Key { return results.Key{Kind: k.Kind, Label: k.Label} },
		},
		{
			name: "calls-by-seat-and-label", title: "By seat and purpose", quiet: true, columns: []string{"seat", "for"},
			of: func(k results.Key) []string { return []string{k.Seat, k.Label} },
			by: func(k results.Key) results.Key { return results.Key{Kind: k.Kind, Seat: k.Seat, Label: k.Label} },
		},
	}
}

func modelOf(k results.Key) string {
	if k.Kind == "ask" {
		return k.Model
	}
	return "(" + k.Kind + ")"
}

// costs returns the tables of costs: by agent and model, by seat, and by purpose. A table with a single row
// besides the first is left out, because it repeats the total.
func costs(r *results.Run) (blocks []Block) {
	all := r.Total("ask")
	for i, c := range costings() {
		accounts := slices.DeleteFunc(r.Rollup(c.by), func(a results.KeyedAccount) bool { return i > 0 && a.Kind != "ask" })
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
		t.Columns = append(t.Columns, Key(name))
	}
	t.Columns = append(t.Columns,
		Number("calls"), Number("cached"), Number("tokens in"), Number("of them cached"), Number("tokens out"),
		Number("of them thought"), Number("cost"), Number("share"), Number("cost a call"))
	for _, a := range accounts {
		var row []Cell
		for _, text := range c.of(a.Key) {
			row = append(row, Word(text))
		}
		t.Rows = append(t.Rows, append(row,
			whole(a.Calls), pageSome(a.Cached+a.Copied), pageSome(a.Usage.Input), pageSome(a.Usage.Cached), pageSome(a.Usage.Output),
			pageSome(a.Usage.Reasoning), money(a.Cost), part(a.Account, all), money(each(a.Account))))
	}
	return t
}

// part is the share of the total cost, or of the tokens if no cost was recorded.
func part(a, all results.Account) Cell {
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
	if n := a.Calls - a.Cached - a.Copied; n > 0 {
		return a.Cost / llm.Money(n)
	}
	return 0
}

func tokens(a results.Account) int { return a.Usage.Total() }
