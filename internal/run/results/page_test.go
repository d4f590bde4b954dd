package results

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pages lists everything in pages of limit rows.
func pages(t *testing.T, x *Index, q Query) (all []Row) {
	t.Helper()
	for {
		rows, err := x.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
		if len(rows) < q.Limit {
			return all
		}
		q.After = &rows[len(rows)-1].Key
	}
}

// TestPages checks that pages in any order and size have every episode once, in that order.
func TestPages(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 60)
	x := open(t, store, "r1")
	update(t, x)
	whole := pages(t, x, Query{Limit: 1000})
	if len(whole) != 60 {
		t.Fatalf("%d episodes, want 60", len(whole))
	}
	value := func(r Row, sort string) float64 {
		return map[string]float64{"episode": float64(r.Episode), "calls": float64(r.Calls), "errors": float64(r.Errors), "tokens": float64(r.Tokens), "cost": float64(r.Cost), "began": float64(r.Began.UnixNano()), "took": float64(r.Took)}[sort]
	}
	for _, sort := range Sorts() {
		for _, desc := range []bool{false, true} {
			want := slices.Clone(whole)
			slices.SortFunc(want, func(a, b Row) int {
				text := 0
				switch sort {
				case "state":
					text = cmp.Compare(a.State, b.State)
				case "cell":
					text = cmp.Compare(a.Cell, b.Cell)
				case "lineup":
					text = cmp.Compare(a.Lineup, b.Lineup)
				}
				order := cmp.Or(text, cmp.Compare(value(a, sort), value(b, sort)), cmp.Compare(a.Episode, b.Episode))
				if desc {
					return -order
				}
				return order
			})
			for _, limit := range []int{1, 7, 60} {
				got := pages(t, x, Query{Sort: sort, Desc: desc, Limit: limit})
				if !slices.EqualFunc(got, want, func(a, b Row) bool { return a.Episode == b.Episode }) {
					t.Errorf("by %s, desc %v, %d a page: %v", sort, desc, limit, numbers(got))
				}
			}
		}
	}
	if _, err := x.Page(t.Context(), Query{Sort: "cost; DROP TABLE meta", Limit: 1}); err == nil {
		t.Error("any text is a column")
	}
	if _, err := x.Page(t.Context(), Query{Sort: "cost", Limit: 1, After: &IndexKey{Value: "x"}}); err == nil {
		t.Error("any text is a position")
	}
	if _, err := x.Page(t.Context(), Query{Bounds: []Bound{{Column: "calls; DROP TABLE meta"}}, Limit: 1}); err == nil {
		t.Error("any text is a column to limit")
	}
}

// TestFiltered checks that a filter leaves out rows and nothing else, in any order, with and without indexes.
func TestFiltered(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 60)
	x := open(t, store, "r1")
	update(t, x)
	if err := x.SetLabels(map[int]map[string]float64{3: {"any": 1}, 9: {"any": 2}, 11: {"any": 2}, 50: {"any": 1}}); err != nil {
		t.Fatal(err)
	}
	whole := pages(t, x, Query{Limit: 1000})
	var orders []Query
	for _, column := range Sorts() {
		orders = append(orders, Query{Sort: column})
	}
	orders = append(orders, Query{Sort: "score", Score: "points", Seat: "second"}, Query{Sort: "label", Score: "any"})
	filters := map[string]struct {
		query Query
		keeps func(Row) bool
	}{
		"state":   {Query{State: whole[1].State}, func(r Row) bool { return r.State == whole[1].State }},
		"cell":    {Query{Cell: whole[2].Cell}, func(r Row) bool { return strings.Contains(r.Cell, whole[2].Cell) }},
		"agent":   {Query{Agent: "small"}, func(r Row) bool { return strings.Contains(r.Lineup+" ", "=small ") }},
		"label":   {Query{Label: "any"}, func(r Row) bool { return slices.Contains([]int{3, 9, 11, 50}, r.Episode) }},
		"cost":    {Query{Bounds: []Bound{{Column: Cost, Low: new(int64(5)), High: new(int64(12))}}}, func(r Row) bool { return r.Cost >= 5 && r.Cost <= 12 }},
		"took":    {Query{Bounds: []Bound{{Column: Took, Low: new(int64(time.Minute))}, {Column: Cost, Low: new(int64(1))}}}, func(r Row) bool { return r.Took >= time.Minute && r.Cost > 0 }},
		"nothing": {Query{State: "none", Text: "nothing"}, func(Row) bool { return false }},
	}
	for _, made := range []bool{false, true} {
		for _, order := range orders {
			for _, order.Desc = range []bool{false, true} {
				order.Limit = 1000
				all := pages(t, x, order)
				for name, f := range filters {
					q := order
					q.State, q.Cell, q.Agent, q.Label, q.Text, q.Bounds, q.Limit = f.query.State, f.query.Cell, f.query.Agent, f.query.Label, f.query.Text, f.query.Bounds, 4
					want := slices.DeleteFunc(slices.Clone(all), func(r Row) bool { return !f.keeps(r) })
					if got := pages(t, x, q); !slices.Equal(numbers(got), numbers(want)) {
						t.Errorf("by %s, desc %v, only %s, indexes %v: %v, want %v", order.Sort, order.Desc, name, made, numbers(got), numbers(want))
					}
				}
			}
		}
		if err := x.MakeIndexes(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
