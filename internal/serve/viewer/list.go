package viewer

import (
	"net/url"
	"strings"
)

// listFilter says which rows a list has and in which order. The address of the page holds it, so that it can be
// shared.
type listFilter struct {
	Words string // that the rows have: see runFilter.passes and episodeFilter.parse
	State string // of runs
	Sort  string // a column; empty: the order that the list has by itself
	Desc  bool
	After string // the last row of the page before
}

// newListFilter reads the parameters of an address.
func newListFilter(q url.Values) listFilter {
	return listFilter{Words: strings.TrimSpace(q.Get("q")), State: q.Get("state"), Sort: q.Get("sort"), Desc: q.Get("desc") != "", After: q.Get("after")}
}

// Address returns the address of the list at a path with this filter.
func (f listFilter) Address(path string) string {
	params := map[string]string{"q": f.Words, "state": f.State, "sort": f.Sort, "after": f.After}
	if f.Desc {
		params["desc"] = "1"
	}
	return withParams(path, params)
}

// From returns the address of the page after a row; empty: of the first page.
func (f listFilter) From(path, after string) string {
	f.After = after
	return f.Address(path)
}

// listColumn is the head of a column. Its address sorts by it.
type listColumn struct {
	Name, To, About string
	Sorted          string // ascending or descending; empty: neither
	Number          bool
}

// column returns the head of a column, whose address sorts by it, and the other way round if the list is sorted by it.
func (f listFilter) column(path, name, sort string, desc bool) listColumn {
	c, to := listColumn{Name: name}, f
	to.Sort, to.Desc = sort, desc
	if f.Sort == sort {
		c.Sorted = "ascending"
		if f.Desc {
			c.Sorted = "descending"
		}
		to.Desc = !f.Desc
	}
	c.To = to.From(path, "")
	return c
}

// withParams returns an address with parameters. Empty ones are left out.
func withParams(path string, params map[string]string) string {
	q := url.Values{}
	for name, value := range params {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
