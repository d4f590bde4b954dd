package browser

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// press presses keys.
func press(t *testing.T, ctx context.Context, keys string) {
	t.Helper()
	do(t, ctx, chromedp.KeyEvent(keys))
}

// TestKeyboard goes through every page with Tab alone: it reaches everything that can be used, in the order of the page,
// and shows where it is. For readers who want no motion, nothing moves.
func TestKeyboard(t *testing.T) {
	ctx := tab(t)
	site, key, _ := strings.Cut(serve(t, program(t), "view", played(t)), "/#key=")
	do(t, ctx, chromedp.Navigate(site+"/#key="+key))
	until(t, ctx, `document.getElementById("t-runs") !== null && location.hash === ""`)
	reduce := []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: reduce}); err != nil {
		t.Fatal(err)
	}
	const run = "/run/one.parley"
	for _, page := range []string{
		"/", run, run + "/episodes", run + "/episodes/3", run + "/episodes/3?label=0:0", run + "/episodes/3/0:0", run + "/search?q=the", "/run/two.parley/episodes/0", "/run/map.parley/episodes/0",
		"/compare", "/compare?a=one.parley&ea=0&b=one.parley&eb=1", run + "/steer?verb=pause", "/nothing",
	} {
		do(t, ctx, chromedp.EmulateViewport(1200, 900))
		visit(t, ctx, site+page)
		if strings.HasSuffix(page, ".parley") {
			until(t, ctx, `document.getElementById("scores") !== null && `+settled)
		}
		stops := eval[int](t, ctx, `(() => {
			window.stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) => !e.disabled && e.checkVisibility({ visibilityProperty: true }));
			window.reached = [];
			document.activeElement.blur();
			getSelection().removeAllRanges();
			addEventListener("focusin", (e) => {
				const s = getComputedStyle(e.target);
				window.reached.push([window.stops.indexOf(e.target), s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1, e.target.outerHTML.slice(0, 150)]);
			});
			return window.stops.length;
		})()`)
		for range 3 { // browsers also stop at what can be scrolled
			press(t, ctx, strings.Repeat(kb.Tab, stops+1))
			if eval[bool](t, ctx, `new Set(window.reached.map(([at]) => at).filter((at) => at >= 0)).size === window.stops.length`) {
				break
			}
		}
		for _, problem := range eval[[]string](t, ctx, `(() => {
			const own = window.reached.filter(([at]) => at >= 0), order = own.map(([at]) => at), out = [];
			window.stops.forEach((e, i) => { if (!order.includes(i) && e.isConnected) out.push("cannot be reached: " + e.outerHTML.slice(0, 150)); });
			order.forEach((at, i) => { if (i > 0 && at < order[i - 1] && at !== 0) out.push("out of order: " + own[i][2]); });
			own.forEach(([, seen, what]) => { if (!seen) out.push("does not show that it has the focus: " + what); });
			return out.slice(0, 5);
		})()`) {
			t.Errorf("%s: %s", page, problem)
		}
		if moves := eval[[]string](t, ctx, `[...document.querySelectorAll("*")].filter((e) => { const s = getComputedStyle(e); return s.scrollBehavior === "smooth" || parseFloat(s.transitionDuration) > 0 || (s.animationName || "none") !== "none"; }).slice(0, 3).map((e) => e.outerHTML.slice(0, 100))`); len(moves) > 0 {
			t.Errorf("%s moves: %v", page, moves)
		}
	}
	visit(t, ctx, site+run+"/episodes/3")
	press(t, ctx, "j")
	until(t, ctx, `location.pathname.endsWith("/4")`)
	press(t, ctx, "k")
	until(t, ctx, `location.pathname.endsWith("/3")`)
	visit(t, ctx, site+run+"/episodes") // its field has no focus at first
	press(t, ctx, "/")
	until(t, ctx, `document.activeElement.matches("input[type=search]")`)
}

// tabTo presses Tab until an element has the focus.
func tabTo(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	until(t, ctx, `document.querySelector("`+selector+`") !== null`)
	for range 100 {
		press(t, ctx, kb.Tab)
		if eval[bool](t, ctx, `document.activeElement.matches("`+selector+`")`) {
			return
		}
	}
	t.Fatalf("Tab does not lead to %s", selector)
}

// confirm answers the question whether to steer with yes: the focus is on no.
func confirm(t *testing.T, ctx context.Context, question string) {
	t.Helper()
	until(t, ctx, `document.querySelector("h1").textContent === "`+question+`?" && document.activeElement.matches("[data-escape]")`)
	do(t, ctx, chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
	press(t, ctx, kb.Enter)
	until(t, ctx, `location.pathname.endsWith("/run.parley")`)
}

// TestSteer pauses a run, gives it a budget, resumes and stops it, with the keyboard alone and while its page changes.
func TestSteer(t *testing.T) {
	ctx := tab(t)
	bin := program(t)
	m := newModel(t, bin)
	go m.pace(t.Context()) // the page changes all the time
	play, file, page := m.begin(t, bin, "lineup: {first: a, second: b}\nepisodes: 5000\nlimits: {concurrency: 8}\n")
	do(t, ctx, chromedp.Navigate(page))
	until(t, ctx, `document.querySelector("button[value=pause]") !== null && location.hash === ""`)
	replaced := func() { // the page has changed around the focus
		t.Helper()
		eval[bool](t, ctx, `window.changed = 0; addEventListener("parley:replaced", (e) => { if (e.target.id === "now") window.changed++; }); true`)
		until(t, ctx, `window.changed > 1`)
	}
	tabTo(t, ctx, "button[value=pause]")
	replaced()
	if !eval[bool](t, ctx, `document.activeElement.matches("button[value=pause]:focus-visible")`) {
		t.Error("the focus is lost when the page changes")
	}
	press(t, ctx, " ")
	until(t, ctx, `document.querySelector("h1").textContent === "pause?"`)
	press(t, ctx, kb.Escape)
	until(t, ctx, `location.pathname.endsWith("/run.parley") && document.querySelector("button[value=pause]") !== null`)
	if eval[bool](t, ctx, `document.body.textContent.includes("by view at")`) {
		t.Error("Escape pauses the run")
	}
	tabTo(t, ctx, "button[value=pause]")
	press(t, ctx, kb.Enter)
	confirm(t, ctx, "pause")
	until(t, ctx, `document.querySelector("#now .state").textContent === "paused" && document.querySelector("#now").textContent.includes("by view at")`)

	tabTo(t, ctx, "button[value=resume]")
	press(t, ctx, kb.Enter)
	confirm(t, ctx, "resume")
	until(t, ctx, `document.querySelector("#now .state").textContent === "playing"`)
	tabTo(t, ctx, "input[name=budget]")
	press(t, ctx, "5")
	tabTo(t, ctx, "input[name=concurrency]")
	press(t, ctx, "3")
	tabTo(t, ctx, "button[value=set]")
	replaced()
	press(t, ctx, kb.Enter)
	confirm(t, ctx, "set budget=5 concurrency=3")
	until(t, ctx, `document.querySelector("#now").textContent.includes("of $5")`)

	tabTo(t, ctx, "button[value=stop]")
	press(t, ctx, kb.Enter)
	confirm(t, ctx, "stop")
	until(t, ctx, `document.querySelector("#now .state").textContent === "stopped"`)
	_ = play.Wait() // its exit code is that of an interrupted run
	out, err := exec.Command(bin, "show", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "budget none → $5.00, concurrency 8 → 3") {
		t.Errorf("%s, %v", out, err)
	}
	again := begin(t, bin, "run", file, "--quiet")
	until(t, ctx, `document.querySelector("#now").textContent.includes("of $5") && document.querySelector("button[value=pause]") !== null`)
	if err := again.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `document.querySelector("#now .state").textContent === "cut off"`)
}

// TestEpisodeLive watches an episode while it is played, killed and resumed.
func TestEpisodeLive(t *testing.T) {
	ctx := tab(t)
	bin := program(t)
	m := newModel(t, bin)
	m.allow(4)
	play, file, page := m.begin(t, bin, "lineup: {first: a, second: b}\nepisodes: 1\nparams: {messages: 12}\n")
	do(t, ctx, chromedp.Navigate(strings.Replace(page, "#", "/episodes/0#", 1)))
	const answers = `document.querySelectorAll(".said.answer").length`
	until(t, ctx, answers+` > 0 && location.hash === ""`)
	eval[bool](t, ctx, `window.first = `+answers+`; window.same = true; true`)
	m.allow(4)
	until(t, ctx, answers+` > window.first + 1`)
	if err := play.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = play.Wait()
	eval[bool](t, ctx, `window.first = `+answers+`; true`)
	m.allowAll()
	if out, err := exec.Command(bin, "run", file, "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	until(t, ctx, answers+` > window.first + 1 && document.querySelector("main .state").textContent === "ended"`)
	if !eval[bool](t, ctx, `window.same === true`) {
		t.Error("the page was loaded again")
	}
}

// TestStoryLive watches a long episode to its end: its story stays on the page.
func TestStoryLive(t *testing.T) {
	ctx := tab(t)
	bin := program(t)
	m := newModel(t, bin)
	m.allow(40)
	_, _, page := m.begin(t, bin, "lineup: {first: a, second: b}\nepisodes: 1\nparams: {messages: 60}\n") // the page reads at most 100 calls at once
	do(t, ctx, chromedp.Navigate(strings.Replace(page, "#", "/episodes/0#", 1)))
	const story = `document.querySelector("#story h2")?.textContent === "What happened"`
	until(t, ctx, story+` && location.hash === ""`)
	eval[bool](t, ctx, `window.same = true; true`)
	m.allowAll()
	until(t, ctx, `document.querySelector("main .state").textContent === "ended" && document.querySelector("#said .pages small").textContent.startsWith("lines 1 to 50 of ")`)
	until(t, ctx, story)
	if !eval[bool](t, ctx, `window.same === true`) {
		t.Error("the page was loaded again")
	}
}
