package viewer

import (
	"context"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/read/report"
	"parley/internal/run/label"
	"parley/internal/run/results"
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
	for words, want := range map[string][]string{
		"waiting":                              span(240, 250),
		"waiting agent:me&sort=cost&desc=1":    span(240, 250),
		"waiting agent:nobody":                 nil,
		"waiting cost<=5":                      nil,
		"waiting cost>=0":                      nil,
		"waiting took<1h":                      nil,
		"waiting&after=245~245":                span(246, 250),
		"waiting label:any":                    {"241", "245"},
		"waiting tag:odd agent:me":             {"241", "245"},
		"waiting verdict:pass&after=241~241":   {"245"},
		"waiting verdict:fail":                 nil,
		"waiting label:any&sort=cost&desc=1":   {"241", "245"},
		"label:any":                            {"0", "3", "241", "245"},
		"label:any failed":                     {"3"},
		"label:any playing":                    {"0"},
		"playing agent:me":                     {"0"},
		"unfinished agent:nobody":              nil,
		"label:any cost>=0":                    {"0", "3"},
		"cost>0.5":                             span(0, 1),
		"cost>=$0.5 cost<=1&sort=cost":         span(0, 1),
		"cost>1":                               nil,
		"cost<0.5 failed":                      span(1, 101),
		"cost<=0.5 failed&sort=cost&after=0~5": span(6, 106),
		"took<=1m":                             span(0, 1), // of the others it is not known
		"took>=0.5":                            nil,
		"deal=7":                               {"7"},
		"episode>=238":                         {"238", "239"},
		"calls>=1 errors=0":                    span(0, 1),
		`reason:"<script>" deal<3`:             {"1", "2"},
		`"no such words"`:                      nil,
		"&sort=lineup":                         span(0, 100),
	} {
		query := pageOf(words)
		status, body, _ := s.get(page + query)
		var got []string
		for _, m := range listed.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if status != 200 || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v, want %v", query, status, got, want)
		}
	}
	for words, want := range map[string]string{
		"cost>x": "want dollars", "took<soon": "want a time", "cost<NaN": "want dollars", "took>1e300": "want a time", "calls>1.5": "want a whole number", "failed ended": "only one is possible",
		"nothing<3": "want one of episode, deal, calls", "colour:red": "want agent:, cell:", "cost>": "a value is missing",
	} {
		if status, body, _ := s.get(page + pageOf(words)); status != 200 || !strings.Contains(body, `role="alert"`) || !strings.Contains(body, want) || listed.MatchString(body) {
			t.Errorf("%s: %d: no %q in %s", words, status, want, body)
		}
	}
	if _, body, _ := s.get(page + pageOf("cost<0.5 took>90s&sort=lineup")); !strings.Contains(body, `value="cost&lt;0.5 took&gt;90s"`) || !strings.Contains(body, `?desc=1&amp;q=cost%3C0.5&#43;took%3E90s&amp;sort=cost">cost</a>`) {
		t.Errorf("the field and the heads of columns do not keep the filter: %s", body)
	}
	for { // texts are added to the index in the background
		_, body, _ := s.get(page + pageOf(`"hello"`))
		if m := listed.FindAllStringSubmatch(body, -1); len(m) == 1 && m[0][1] == "0" {
			break
		}
		if t.Context().Err() != nil {
			t.Fatalf("the list has no episode by what was said: %s", body)
		}
	}
}

// pageOf returns the parameters of the list for the words of a query, which other parameters can follow.
func pageOf(words string) string {
	words, more, _ := strings.Cut(words, "&")
	return url.Values{"q": {words}}.Encode() + "&" + more
}

// TestLines checks what a line of the list has: what tells its episode from others, the measures that differ, and who answered when.
func TestLines(t *testing.T) {
	t.Parallel()
	row := func(cell, strip string, scores ...world.Score) results.Row {
		return results.Row{Episode: results.Episode{Cell: cell, Scores: scores}, Lineup: "A=x B=y C=z D=x", Strip: strip}
	}
	of := func(seat string, value float64) world.Score {
		return world.Score{Seat: seat, Name: "points", Value: value}
	}
	one := row("mode=a, size=3", "ab!b", of("A", 1), of("B", 4), of("C", 4), of("D", 0), world.Score{Name: "draw", Value: 0}, world.Score{Name: "rounds", Value: 7})
	two := row("mode=b, size=3", "", of("A", 1), of("B", 2.123456), of("C", 1), of("D", 0), world.Score{Name: "draw", Value: 0}, world.Score{Name: "rounds", Value: 8})
	l := episodeList{colours: report.NewPalette(&results.Run{Head: &journal.Head{Begun: &journal.Begun{}}}, world.Kind{})}
	l.same = sameParts([]results.Row{one, two})
	if got := []string{l.Who(one), l.Who(two), episodeList{}.Who(one), episodeList{}.Who(row("", ""))}; !slices.Equal(got, []string{"mode=a", "mode=b", "mode=a · size=3", "A x · B y · C z · D x"}) {
		t.Errorf("%q", got)
	}
	scores := []results.ScoreName{{Name: "points", Seat: "A"}, {Name: "points", Seat: "B"}, {Name: "draw"}, {Name: "rounds"}}
	if got := measuresOf(scores, []results.Row{one, two}); !slices.Equal(got, []string{"points", "rounds"}) {
		t.Errorf("the measures that differ: %q", got)
	}
	if m := l.Of(one, "points"); m.Text != "4" || m.Bars == "" || m.All != "A 1, B 4, C 4, D 0" {
		t.Errorf("two have the highest: %+v", m)
	}
	if m := l.Of(two, "points"); m.Text != "B 2.12" {
		t.Errorf("one has the highest: %+v", m)
	}
	if l.Of(one, "rounds").Text != "7" || l.Of(one, "none") != nil {
		t.Error("a measure of the whole episode")
	}
	var classes []string
	for _, part := range l.Strip(one) {
		classes = append(classes, part.Class)
	}
	if !slices.Equal(classes, []string{"lost", "s0 d0", "s1 d0"}) {
		t.Errorf("%q", classes)
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
	if !says("sort=cost") || !says("q=cost>1") || says("") || says("q=waiting") {
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

// TestHostileQueries: whatever is written into the field, the list answers, shows it as text and does not grow with it.
func TestHostileQueries(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	s := serve(t, folder)
	for _, c := range []struct {
		query string
		code  int
		says  string // in the body
	}{
		{strings.Repeat("cost>0 ", 50), 200, ""},
		{strings.Repeat("cost>0 ", 51), 200, "it has more than 50 words"},
		{strings.Repeat("x", maxAddress), 400, "longer than 8192 bytes"},
		{strings.Repeat("x", 5000) + "<1", 200, "there is no such number"},
		{`"a' OR 1=1 --`, 200, ""}, {`agent:"' OR ''='"`, 200, ""}, {`"x" OR NEAR(y) AND * ^ {`, 200, ""}, {`(.*)+$ [a-z`, 200, ""},
		{`points@"'; DROP TABLE scores"<1`, 200, "there is no such number"}, {"cost>1e999", 200, "want dollars"}, {"took<-9e99", 200, "want a time"},
		{"\x00", 200, ""}, {"\xff\xfe", 200, ""},
		{"\u202egnp \u0000 \x1b[2J 日本", 200, ""}, {`<script>alert(1)</script>`, 200, ""}, {`">` + attack, 200, ""},
	} {
		code, body, _ := s.get("/run/a.parley/episodes?q=" + url.QueryEscape(c.query))
		if code != c.code || !strings.Contains(body, c.says) || strings.Contains(body, "<script>") || strings.Contains(body, "\u202e") || strings.Contains(body, "\x1b") || len(body) > 1_000_000 {
			t.Errorf("%.60q: %d, %d bytes, want %d %q:\n%.3000s", c.query, code, len(body), c.code, c.says, body)
		}
	}
	if _, body, _ := s.get("/run/a.parley/episodes"); !strings.Contains(body, `data-name="state"`) {
		t.Errorf("no episodes are left: %s", body)
	}
}
