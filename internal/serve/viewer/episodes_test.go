package viewer

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/run/label"
	"parley/journal"
	"parley/world"
)

// TestFilters checks which episodes a list has, by what its address says.
func TestFilters(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	record(t, file) // episode 0 is played and cost a dollar, 1 to 239 failed, and 10 wait
	for _, n := range []int{0, 3, 241, 245, 1 << 40} {
		if err := label.Add(file, label.Label{Run: file, Episode: n, Tag: "odd", Verdict: label.Pass}); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, file)
	const page = "/run/a.parley/episodes?"
	listed := regexp.MustCompile(`<th scope="row" class="number"><a href="[^"]*">(\d+)</a>`)
	span := func(from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, strconv.Itoa(i))
		}
		return out
	}
	for query, want := range map[string][]string{
		"state=waiting": span(240, 250),
		"state=waiting&agent=me&sort=cost&desc=1":        span(240, 250),
		"state=waiting&agent=nobody":                     nil,
		"state=waiting&cost_high=5":                      nil,
		"state=waiting&cost_low=0":                       nil,
		"state=waiting&took_high=1h":                     nil,
		"state=waiting&after=245~245":                    span(246, 250),
		"state=waiting&label=any":                        {"241", "245"},
		"state=waiting&label=tag/odd&agent=me":           {"241", "245"},
		"state=waiting&label=verdict/pass&after=241~241": {"245"},
		"state=waiting&label=verdict/fail":               nil,
		"state=waiting&label=any&sort=cost&desc=1":       {"241", "245"},
		"label=any":                                      {"0", "3", "241", "245"},
		"label=any&state=failed":                         {"3"},
		"label=any&state=playing":                        {"0"},
		"label=any&cost_low=0":                           {"0", "3"},
		"cost_low=0.5":                                   span(0, 1),
		"cost_low=$0.5&cost_high=1&sort=cost":            span(0, 1),
		"cost_low=1.01":                                  nil,
		"cost_high=0.5&state=failed":                     span(1, 101),
		"cost_high=0.5&state=failed&sort=cost&after=0~5": span(6, 106),
		"took_high=1m":                                   span(0, 1), // of the others it is not known
		"took_low=0.5":                                   nil,
		"sort=lineup":                                    span(0, 100),
	} {
		status, body, _ := s.get(page + query)
		var got []string
		for _, m := range listed.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if status != 200 || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v, want %v", query, status, got, want)
		}
	}
	for query, want := range map[string]string{"cost_low=x": "want dollars", "took_high=soon": "want a time", "cost_high=NaN": "want dollars", "took_low=1e300": "want a time"} {
		if status, body, _ := s.get(page + query); status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d: no %q in %s", query, status, want, body)
		}
	}
	if _, body, _ := s.get(page + "cost_high=0.5&took_low=90s&sort=lineup"); !strings.Contains(body, `name="cost_high" value="0.5"`) || !strings.Contains(body, `name="took_low" value="90s"`) || !strings.Contains(body, `cost_high=0.5&amp;desc=1&amp;sort=lineup&amp;took_low=90s">lineup</a>`) {
		t.Errorf("the form and the heads of columns do not keep the filter: %s", body)
	}
}

// TestIndexing checks that a list that comes from the index says so as long as the index does not have all episodes.
func TestIndexing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	record(t, file)
	v, err := New(Config{Paths: []string{file}, KindOf: func(*journal.Begun) world.Kind { return world.Kind{} }, Tool: "parley test"})
	if err != nil {
		t.Fatal(err)
	}
	defer v.runs.Close()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	v.ctx = stopped // nothing follows the run
	says := func(query string) bool {
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/run/a.parley/episodes?"+query, nil)
		req.SetPathValue("run", "a.parley")
		p, err := v.episodes(req)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		v.render(p)(w)
		return strings.Contains(w.Body.String(), "Episodes are still being added to the index. The list shows those that are in it.")
	}
	if !says("sort=cost") || !says("cost_low=1") || says("") || says("state=waiting") {
		t.Error("the list does not say whether its index has all episodes")
	}
	r, _, err := v.runs.Get(t.Context(), "a.parley")
	if err != nil {
		t.Fatal(err)
	}
	changed, unwatch := r.Watch()
	following, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.Follow(following) })
	for !r.Indexed() {
		<-changed
	}
	if says("sort=cost") {
		t.Error("the index has all episodes, and the list says that it has not")
	}
	end()
	wg.Wait()
	unwatch()
}
