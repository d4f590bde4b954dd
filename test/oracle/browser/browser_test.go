package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"parley/world/exhibit"
)

// patience is how long a step may take on a machine that is busy with other things.
const patience = 3 * time.Minute

// tab opens a browser. It skips the test if no browser is installed.
func tab(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no browser: install chromium to check the pages of reports (on Debian: apt-get install chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the context that starts it
		t.Fatal(err)
	}
	return ctx
}

// do runs actions.
func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval evaluates an expression in the page. What it needs must be there: see until.
func eval[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits until a script returns true of a page that is loaded whole: a heading is there before the form below it is.
func until(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(() => { try { return document.readyState === "complete" && (`+script+`); } catch { return false; } })()`))
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v, %v", script, ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// settled means that a page of the viewer changes no more unless its run does: what is loaded late is there, and a page that follows
// its run has fetched itself since it was connected.
const settled = `document.querySelector("[data-load], [data-again]") === null && (document.body.dataset.events === undefined || document.body.dataset.current !== undefined)`

// visit opens a page and waits until it has settled.
func visit(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(address))
	until(t, ctx, settled)
}

// saved writes a page and returns its address.
func saved(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// TestQuiet checks that the page logs no error and loads nothing else.
func TestQuiet(t *testing.T) {
	ctx := tab(t)
	page, end := saved(t, "report.html", hostilePage(t)), saved(t, "end.html", "<!DOCTYPE html><title>end</title>")
	do(t, ctx, chromedp.Navigate("about:blank"))
	console := chromedp.Console(ctx)
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	do(t, ctx, chromedp.Navigate(page))
	eval[bool](t, ctx, `document.querySelectorAll("details").forEach((d) => { d.open = true; }); true`)
	if n := eval[int](t, ctx, `performance.getEntriesByType("resource").length`); n != 0 {
		t.Errorf("the page asked for %d other things", n)
	}
	eval[bool](t, ctx, `console.log("all was said"); true`)
	for m, err := range console {
		if err != nil {
			t.Fatal(err)
		}
		if m.Text == "all was said" {
			break
		}
		t.Errorf("the console says: %s", m.Text)
	}
	do(t, ctx, chromedp.Navigate(end))
	for r, err := range requests {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(r.Request.URL, "/end.html") {
			break
		}
		if r.Request.URL != page {
			t.Errorf("the page asked for %s", r.Request.URL)
		}
	}
}

// TestHostileTextStaysText checks that text of models is shown and never executed.
func TestHostileTextStaysText(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(saved(t, "report.html", hostilePage(t))))
	for script, want := range map[string]int{
		`document.scripts.length`: 1,
		`document.querySelectorAll("img,iframe,object,embed,link,form,base").length`:                                      0,
		`[...document.querySelectorAll("*")].filter((e) => e.getAttributeNames().some((n) => n.startsWith("on"))).length`: 0,
		`Number(window.owned !== undefined)`: 0,
	} {
		if got := eval[int](t, ctx, script); got != want {
			t.Errorf("%s is %d, want %d", script, got, want)
		}
	}
	said := eval[string](t, ctx, `document.querySelector(".said.answer .words").textContent`)
	for _, want := range []string{`<script>window.owned=1</script>`, `<img src=x onerror="window.owned=2">`, `\u001b[2J`} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not there to be read: %q", want, said)
		}
	}
}

// TestFits: no word is so long that the page grows wider than the window.
func TestFits(t *testing.T) {
	ctx := tab(t)
	page := saved(t, "report.html", hostilePage(t))
	for _, width := range []int64{400, 800, 1400} {
		do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page))
		eval[bool](t, ctx, `document.querySelectorAll("details").forEach((d) => { d.open = true; }); true`)
		if got := eval[int64](t, ctx, `document.documentElement.scrollWidth`); got > width {
			t.Errorf("at %d the page is %d wide", width, got)
		}
	}
}

// TestRoom checks that labels of charts do not overlap, and that every column of an ordinary table is visible.
func TestRoom(t *testing.T) {
	ctx := tab(t)
	page := saved(t, "report.html", pageOf(t, func() exhibit.Exhibitor { return &crowd{} }))
	for _, width := range []int64{390, 800, 1200} {
		do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page))
		for _, pair := range eval[[]string](t, ctx, `[...document.querySelectorAll("#kind .drawing>svg")].flatMap((svg) => {
			const texts = [...svg.querySelectorAll("text")].map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
			return texts.flatMap(([a, r], i) => texts.slice(i + 1).filter(([, o]) => r.left < o.right - 1 && o.left < r.right - 1 && r.top < o.bottom - 3 && o.top < r.bottom - 3).map(([b]) => a + " covers " + b));
		})`) {
			t.Errorf("at %d: %s", width, pair)
		}
		if n := eval[int](t, ctx, `document.querySelectorAll("#kind .drawing text").length`); n < 30 {
			t.Errorf("%d words in charts", n)
		}
		if over := eval[int](t, ctx, `{const s = document.querySelector("#t-wide").parentElement; s.scrollWidth - s.clientWidth}`); width != 800 && over > 0 {
			t.Errorf("at %d a table is wider than its room by %d", width, over)
		}
	}
}

// TestWorks uses the script of the page: filter, sort, replay, dark and light mode.
func TestWorks(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(saved(t, "report.html", hostilePage(t))))
	rows := `[...document.querySelectorAll("#t-episodes tbody tr")].filter((r) => !r.hidden)`
	all := eval[int](t, ctx, rows+".length")
	eval[bool](t, ctx, `{const f = document.querySelector('[data-filter="t-episodes"]'); f.value = "failed"; f.dispatchEvent(new Event("input")); true}`)
	if got := eval[int](t, ctx, rows+".length"); got != 1 || all != episodes {
		t.Errorf("the filter leaves %d of %d episodes", got, all)
	}
	first := `document.querySelector("#t-episodes tbody tr th").textContent`
	eval[bool](t, ctx, `document.querySelector("#t-episodes .sort").click(); true`)
	if got := eval[string](t, ctx, first); got != "11" {
		t.Errorf("sorted, episode %s is first", got)
	}
	frame := `document.querySelector(".replay section:not([hidden]) h4").textContent`
	before := eval[string](t, ctx, frame)
	eval[bool](t, ctx, `document.querySelector('.replay [data-step="1"]').click(); true`)
	if after := eval[string](t, ctx, frame); before != "spring" || after != "autumn" {
		t.Errorf("the replay goes from %s to %s", before, after)
	}
	paper := `getComputedStyle(document.body).backgroundColor`
	light := eval[string](t, ctx, paper)
	eval[bool](t, ctx, `document.getElementById("theme").click(); true`)
	if paint := eval[string](t, ctx, paper); paint == light {
		t.Errorf("dark and light mode have the same background: %s", paint)
	}
}
