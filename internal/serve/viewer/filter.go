package viewer

import (
	"net/url"
	"slices"
	"strings"
)

// perPage is how many runs a page lists.
const perPage = 100

// filter says which runs to list, as the address of the page does.
type filter struct {
	Words string // that a run has: in its name, kind, state or origin
	State string
	After string // the name of the last run of the page before
}

// newFilter reads the parameters of an address.
func newFilter(q url.Values) filter {
	return filter{Words: q.Get("q"), State: q.Get("state"), After: q.Get("after")}
}

// Address returns the address of the list with this filter.
func (f filter) Address() string {
	q := url.Values{}
	for name, value := range map[string]string{"q": f.Words, "state": f.State, "after": f.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// Page returns a page of the runs that pass the filter, how many pass it, and the address of the next page.
func (f filter) Page(all []*Entry) (page []*Entry, passed int, next string) {
	words := strings.Fields(strings.ToLower(f.Words))
	all = slices.DeleteFunc(slices.Clone(all), func(e *Entry) bool { return !f.passes(e, words) })
	passed = len(all)
	if i := slices.IndexFunc(all, func(e *Entry) bool { return e.Name == f.After }); i >= 0 {
		all = all[i+1:]
	}
	if len(all) > perPage {
		all = all[:perPage]
		f.After = all[perPage-1].Name
		next = f.Address()
	}
	return all, passed, next
}

func (f filter) passes(e *Entry, words []string) bool {
	if f.State != "" && e.State != f.State {
		return false
	}
	text := e.Name + " " + e.Kind + " " + e.State + " " + e.Origin
	if e.Fork != nil {
		text += " fork " + e.Fork.File
	}
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
