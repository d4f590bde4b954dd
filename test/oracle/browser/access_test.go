package browser

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe returns the text of axe-core, which checks pages for people who cannot see them well or use no mouse. It is not
// ours and not in the tree: .ci/run fetches it.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PARLEY_AXE")
	if path == "" {
		t.Skip("PARLEY_AXE does not name the file axe.min.js of axe-core: run this by .ci/run oracle")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAccess checks every page in light and dark: axe-core finds nothing, and nothing is wider than a small screen.
// It labels an episode first, as a person does.
func TestAccess(t *testing.T) {
	check, ctx := axe(t), tab(t)
	site, key, _ := strings.Cut(serve(t, program(t), "view", played(t)), "/#key=")
	do(t, ctx, chromedp.Navigate(site+"/run/one.parley/episodes/3#key="+key))
	until(t, ctx, `document.querySelector("[name=by]") !== null`)
	eval[bool](t, ctx, `document.querySelector("details.labelling").open = true; document.querySelector("[name=verdict]").value = "pass"; document.querySelector("[name=tag]").value = "kind"; document.querySelector("[name=by]").value = "Eva"; document.querySelector(".labelling button").click(); true`)
	until(t, ctx, `document.querySelector("#labels .label.pass") !== null && document.querySelector("[name=by]").value === "Eva"`)
	eval[bool](t, ctx, `document.querySelector("a.quiet").click(); true`)
	until(t, ctx, `document.querySelector("details.labelling").open && document.querySelector("[name=call]").value !== ""`)
	eval[bool](t, ctx, `document.querySelector("[name=note]").value = "well said"; document.querySelector(".labelling button").click(); true`)
	until(t, ctx, `document.querySelector(".said .given") !== null`)
	const run = "/run/one.parley"
	for _, page := range []string{
		"/", run, run + "/episodes", run + "/episodes?q=label:any/episodes?label=any&sort=label:verdictsort=label:verdict", run + "/episodes/3", run + "/episodes/3?label=0:0", run + "/episodes/3/0:0", run + "/episodes/3?text=markdown", run + "/episodes/3/0:0?text=markdown", run + "/search", run + "/search?q=the", run + "/report",
		"/run/two.parley", "/run/two.parley/episodes", "/run/two.parley/episodes/0", "/run/map.parley", "/run/map.parley/episodes/0", "/compare",
		"/compare?a=one.parley&ea=0&b=one.parley&eb=1", "/compare?a=one.parley&b=two.parley", "/nothing",
	} {
		do(t, ctx, chromedp.EmulateViewport(1200, 900))
		visit(t, ctx, site+page)
		if strings.HasPrefix(page, "/run/") && strings.HasSuffix(page, ".parley") {
			until(t, ctx, `document.getElementById("scores") !== null && `+settled)
		}
		eval[bool](t, ctx, `document.querySelectorAll("details").forEach((d, i) => { if (i < 20) d.open = true; }); true`)
		eval[bool](t, ctx, check+`; true`)
		// Only the colours differ in the dark.
		for scheme, rules := range map[string]string{"light": `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`, "dark": `{ type: "rule", values: ["color-contrast"] }`} {
			eval[bool](t, ctx, `document.documentElement.style.colorScheme = "`+scheme+`"; window.found = undefined; axe.run({ runOnly: `+rules+` }).then((r) => { window.found = r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " | " + n.failureSummary).join("; ")); }); true`)
			until(t, ctx, `window.found !== undefined`)
			for _, found := range eval[[]string](t, ctx, `window.found`) {
				t.Errorf("%s, %s: %s", page, scheme, found)
			}
		}
		// axe-core lets a small target pass where nothing else is near it, and what is near depends on the order of the calls.
		if small := eval[string](t, ctx, `[...document.querySelectorAll("summary, button")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).slice(0, 3).map((e) => e.outerHTML.slice(0, 150)).join(" ")`); small != "" {
			t.Errorf("%s: too small to hit: %s", page, small)
		}
		do(t, ctx, chromedp.EmulateViewport(390, 800))
		if got := eval[int](t, ctx, `document.documentElement.scrollWidth`); got > 390 {
			t.Errorf("%s: at 390 it is %d wide: %s", page, got, eval[string](t, ctx, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 391 && !e.closest(".scroll")).slice(0, 3).map((e) => e.outerHTML.slice(0, 150)).join(" ")`))
		}
		if page != run+"/report" { // a report is as long as its run
			if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 3000 {
				t.Errorf("%s has %d elements", page, n)
			}
		}
	}
}
