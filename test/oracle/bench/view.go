package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// view measures parley view: a million episodes, a long transcript, how late a live page is, and what it costs the run
// that it shows. It writes its table into docs/reference/benchmarks.md.
func view(b *bench, args []string) error {
	flags := flag.NewFlagSet("view", flag.ContinueOnError)
	dir := flags.String("dir", b.dir, "where the run files are kept: they take minutes to write, and 1 GB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	million, err := viewMillion(*dir)
	if err != nil {
		return err
	}
	long, err := viewLong(*dir)
	if err != nil {
		return err
	}
	type row struct {
		name, bar string
		run       func() (string, error)
	}
	var rows []string
	for _, r := range []row{
		{"first paint at 1,000,000 episodes, warm and without an index", "150 ms; 1 s", func() (string, error) { return b.viewPaint(million) }},
		{"pages of the list, p95: indexed, first sort by a column", "50 ms; 600 ms", func() (string, error) { return b.viewLists(million) }},
		{"a transcript of 10,000 messages: first view, elements on the page", "100 ms; 3,000", func() (string, error) { return b.viewTranscript(long) }},
		{"from an entry in the run file to the open page", "1 s", b.viewLag},
		{"throughput of a run with five pages open, beside none", "at least 0.98", b.viewBeside},
	} {
		got, err := r.run()
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		b.printf("%-70s %-16s %s\n", r.name, r.bar, got)
		rows = append(rows, tableRow(got, "at most "+strings.TrimPrefix(r.bar, "at most "), r.name))
	}
	about := fmt.Sprintf("Measured on %s with Chromium and Go %s on %d cores.", time.Now().Format("2006-01-02"), strings.TrimPrefix(runtime.Version(), "go"), runtime.NumCPU())
	for i, row := range rows {
		rows[i] = strings.ReplaceAll(row, "at most at least", "at least")
	}
	return updateTable("view", about, rows)
}

// watcher is a viewer and a browser.
type watcher struct {
	*server
	site, key string
	pid       int
}

// viewer starts parley view.
func (b *bench) viewer(path string) (*watcher, error) {
	s, err := b.serve("view", path)
	if err != nil {
		return nil, err
	}
	site, key, _ := strings.Cut(s.url, "/#key=")
	return &watcher{s, site, key, s.cmd.Process.Pid}, nil
}

// get asks for a page and returns how long it took.
func (w *watcher) get(path string) (time.Duration, error) {
	req, err := http.NewRequest(http.MethodGet, w.site+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	return time.Since(began), err
}

// megabytes returns the most memory that a process has had.
func megabytes(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	return n / 1024
}

// openBrowser opens a browser. end closes it.
func openBrowser() (ctx context.Context, end func(), err error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("there is no browser: install chromium: %w", err)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	ctx, cancel := chromedp.NewContext(ctx)
	return ctx, func() { cancel(); stop() }, nil
}

// pause is how long a page is left alone before it is asked when it was painted: asking takes time from painting.
const pause = 400 * time.Millisecond

// paint opens a page and returns its first paint and how many elements it has.
func paint(ctx context.Context, address string) (first time.Duration, elements int, err error) {
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		return 0, 0, err
	}
	time.Sleep(pause)
	const entry = `performance.getEntriesByName("first-contentful-paint")[0]`
	if err := awaited(ctx, entry+" !== undefined"); err != nil {
		return 0, 0, err
	}
	got, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](`[`+entry+`.startTime, document.querySelectorAll("*").length]`))
	if err != nil {
		return 0, 0, err
	}
	return time.Duration(got[0] * float64(time.Millisecond)), int(got[1]), nil
}

// signIn opens a page with the key.
func (w *watcher) signIn(ctx context.Context, path string) error {
	if err := chromedp.Do(ctx, chromedp.Navigate(w.site+path+"#key="+w.key)); err != nil {
		return err
	}
	return awaited(ctx, `location.hash === "" && document.querySelector("main h1") !== null && !document.getElementById("needed")`)
}

// awaited waits until a script returns true.
func awaited(ctx context.Context, script string) error {
	for range 1200 {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(() => { try { return `+script+`; } catch { return false; } })()`))
		if ctx.Err() != nil {
			return err
		}
		if err == nil && ok { // a page that is being replaced by another cannot be asked
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the page never has %s", script)
}

// settled waits until files do not grow any more.
func settled(paths ...string) error {
	last, same := int64(-1), 0
	for range 600 {
		var size int64
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				size += info.Size() + info.ModTime().UnixNano()%1e9
			}
		}
		if same++; size != last {
			last, same = size, 0
		}
		if same == 4 {
			return nil
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("%s still grows", paths[0])
}

const millionPage = "/run/million.parley"

// viewPaint measures the first paint of the overview: with a new viewer and no index, and with everything warm.
func (b *bench) viewPaint(path string) (string, error) {
	for _, suffix := range []string{"-view", "-view-wal", "-view-shm"} {
		_ = os.Remove(path + suffix)
	}
	ctx, end, err := openBrowser()
	if err != nil {
		return "", err
	}
	defer end()
	w, err := b.viewer(path)
	if err != nil {
		return "", err
	}
	defer w.stop()
	if err := w.signIn(ctx, "/nothing"); err != nil { // a page that reads nothing
		return "", err
	}
	cold, _, err := paint(ctx, w.site+millionPage)
	if err != nil {
		return "", err
	}
	if err := settled(path+"-view", path+"-view-wal"); err != nil { // the index is complete
		return "", err
	}
	var warm []time.Duration
	for range 15 {
		one, _, err := paint(ctx, w.site+millionPage)
		if err != nil {
			return "", err
		}
		warm = append(warm, one)
	}
	return fmt.Sprintf("%s; %d ms; the viewer has had %.0f MB", median(warm), cold.Milliseconds(), megabytes(w.pid)), nil
}

// viewLists measures pages of the list: the first sort by each column, and then pages in that order.
func (b *bench) viewLists(path string) (string, error) {
	w, err := b.viewer(path)
	if err != nil {
		return "", err
	}
	defer w.stop()
	list := millionPage + "/episodes"
	if _, err := w.get(list); err != nil {
		return "", err
	}
	var first, indexed []time.Duration
	for _, column := range []string{"state", "cell", "calls", "tokens", "took", "score:points:first"} {
		one, err := w.get(list + "?desc=1&sort=" + column)
		if err != nil {
			return "", err
		}
		first = append(first, one)
		if err := settled(path+"-view", path+"-view-wal"); err != nil { // the index of the column is made
			return "", err
		}
		for i := range 20 {
			after := map[string]string{"state": "ended", "cell": "small against large", "calls": "1", "tokens": "500", "took": "1000000000", "score:points:first": "50"}[column]
			one, err := w.get(fmt.Sprintf("%s?sort=%s&after=%s~%d", list, column, strings.ReplaceAll(after, " ", "+"), i*48_611))
			if err != nil {
				return "", err
			}
			indexed = append(indexed, one)
		}
	}
	for i := range 20 {
		one, err := w.get(fmt.Sprintf("%s?after=x~%d", list, i*48_611))
		if err != nil {
			return "", err
		}
		indexed = append(indexed, one)
	}
	slices.Sort(first)
	slices.Sort(indexed)
	p95 := func(d []time.Duration) int64 { return d[len(d)*95/100].Milliseconds() }
	return fmt.Sprintf("%d ms; %d ms; the viewer has had %.0f MB", p95(indexed), p95(first), megabytes(w.pid)), nil
}

// middle is a page in the middle of the long transcript, as the links of the pages before it have it: its first line, and
// the entry before that.
const middle = "5000.10003"

// viewTranscript measures the first view of a long transcript, each time with a new browser and a new viewer: as the first page that
// the browser shows, and as a person comes to it, from the list of episodes.
func (b *bench) viewTranscript(path string) (string, error) {
	var first, listed, later []time.Duration
	elements, memory := 0, 0.0
	for range 5 {
		for _, v := range []struct {
			from  string
			views *[]time.Duration
		}{{"", &first}, {"/episodes", &listed}} {
			err := b.transcript(path, v.from, func(one, middle time.Duration, found int, had float64) {
				*v.views, later = append(*v.views, one), append(later, middle)
				elements, memory = max(elements, found), max(memory, had)
			})
			if err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%s from the list, then %s in its middle; %s as the first page of a new browser; %d elements; the viewer has had %.0f MB",
		median(listed), median(later), median(first), elements, memory), nil
}

// transcript opens a long transcript, coming from another page of the run if one is named, and then its middle. It reports the first
// paints of both, how many elements the pages had at most, and the memory of the viewer.
func (b *bench) transcript(path, from string, report func(first, middle time.Duration, elements int, memory float64)) error {
	ctx, end, err := openBrowser()
	if err != nil {
		return err
	}
	defer end()
	w, err := b.viewer(path)
	if err != nil {
		return err
	}
	defer w.stop()
	if err := w.signIn(ctx, "/nothing"); err != nil {
		return err
	}
	run := w.site + "/run/" + filepath.Base(path)
	if from != "" {
		if _, _, err := paint(ctx, run+from); err != nil {
			return err
		}
	}
	first, elements, err := paint(ctx, run+"/episodes/0")
	if err != nil {
		return err
	}
	later, others, err := paint(ctx, run+"/episodes/0?from="+middle)
	if err != nil {
		return err
	}
	report(first, later, max(elements, others), megabytes(w.pid))
	return nil
}

// median returns the median of some durations, in milliseconds.
func median(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("%d ms", d[len(d)/2].Milliseconds())
}
