package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestRuns looks at a folder of runs: main scores, a fork below its origin, and the search.
func TestRuns(t *testing.T) {
	ctx := tab(t)
	bin := program(t)
	folder := played(t)
	if out, err := exec.Command(bin, "fork", filepath.Join(folder, "one.parley"), "--episode", "3", "--turn", "2", "--repeat", "3", "--out", filepath.Join(folder, "branch.parley"), "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	site, key, _ := strings.Cut(serve(t, bin, "view", folder), "/#key=")
	do(t, ctx, chromedp.Navigate(site+"/#key="+key))
	until(t, ctx, `document.querySelectorAll("#t-runs tbody tr").length === 4 && document.querySelector("#runs [data-again]") === null`)
	const row = `[...document.querySelectorAll("#t-runs tbody tr")].map((r) => r.querySelector("a").textContent)`
	if !eval[bool](t, ctx, `(() => { const names = `+row+`; return names.indexOf("branch.parley") === names.indexOf("one.parley") + 1 && document.querySelectorAll("#t-runs .fork").length === 1; })()`) {
		t.Errorf("the fork is not below its origin: %v", eval[[]string](t, ctx, row))
	}
	score := eval[string](t, ctx, `document.querySelectorAll("#t-runs tbody tr")[`+row+`.indexOf("one.parley")].querySelector(".score").textContent`)
	if !regexp.MustCompile(`^points [ab] -?[\d.]+ [ab] -?[\d.]+$`).MatchString(strings.Join(strings.Fields(score), " ")) {
		t.Errorf("the main score is %q", score)
	}
	if n := eval[int](t, ctx, `document.querySelectorAll("#t-runs tbody tr")[`+row+`.indexOf("one.parley")].querySelectorAll(".means .whisker").length`); n < 2 {
		t.Errorf("the intervals are not drawn: %d lines", n)
	}
	eval[bool](t, ctx, `for (const name of ["one.parley", "branch.parley"]) document.querySelector("input[value='" + name + "']").checked = true; document.querySelector("#runs button").click(); true`)
	until(t, ctx, `location.pathname === "/compare" && location.search.split("run=").length === 3 && document.querySelector("h1").textContent === "Compare" && !document.body.textContent.includes("Tick two runs.")`)
	do(t, ctx, chromedp.Navigate(site+"/"))
	until(t, ctx, `document.querySelectorAll("#t-runs tbody tr").length === 4`)
	eval[bool](t, ctx, `document.querySelector("input[name=q]").value = "kind:diplomacy complete"; document.querySelector(".find button").click(); true`)
	until(t, ctx, `location.search.includes("q=kind") && `+row+`.join() === "map.parley"`)

	plan := filepath.Join(folder, "long.yaml")
	if err := os.WriteFile(plan, []byte("kind: secrets\nseed: 1\nagents: {a: {model: sim/a}, b: {model: sim/b}}\nplan: {matrix: {agents: [a, b], self: false, repeat: 1}}\nparams: {messages: 200}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin, "run", plan, "--out", filepath.Join(folder, "long.parley"), "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	do(t, ctx, chromedp.Navigate(site+"/run/long.parley/episodes/0"))
	until(t, ctx, `document.querySelectorAll("#said .lines > *").length === 50 && document.body.textContent.includes("lines 1 to 50 of more")`)
	until(t, ctx, `document.getElementById("story") !== null && document.querySelector("[data-load]") === null`) // the whole episode was read
}

// TestView watches a run in a browser while it is played, killed and resumed, and then finds an episode, a call and
// a word.
func TestView(t *testing.T) {
	ctx := tab(t)
	bin := program(t)
	m := newModel(t, bin)
	m.allow(300)
	paced, quick := context.WithCancel(t.Context())
	defer quick()
	go m.pace(paced)
	play, file, page := m.begin(t, bin, "prices: prices.json\nbudget: 100\nplan: {matrix: {agents: [a, b], swap: true, self: false, repeat: 150}}\nlimits: {concurrency: 8}\n")
	site, key, _ := strings.Cut(page, "/run/run.parley#key=")
	do(t, ctx, chromedp.Navigate("about:blank"))
	console := chromedp.Console(ctx)
	do(t, ctx, chromedp.Navigate(site+"/run/run.parley#key="+key))
	const done = `Number(document.querySelector("#now [data-done]").textContent.replaceAll(",", ""))`
	until(t, ctx, `document.querySelector("#now [data-done]") !== null && location.hash === ""`)
	eval[bool](t, ctx, `window.first = `+done+`; window.same = true; true`)
	until(t, ctx, `window.same && `+done+` > window.first + 3`) // the page was not loaded again
	until(t, ctx, `document.getElementById("scores") !== null && document.querySelectorAll("#result .track > svg").length === 2 && document.querySelector(".facts dt").textContent === "main result: points"`)
	until(t, ctx, `document.body.textContent.includes("calls in flight")`)
	// The process that plays: its servers beside their limits, its models, what it costs, and how it was before.
	until(t, ctx, `[...document.querySelectorAll("#result .fold h2")].map((h) => h.textContent).join() === "Servers and their limits,Models, since this process began"`)
	until(t, ctx, `document.querySelectorAll("#result [data-name='requests a minute'] progress").length === 1 && parseFloat(document.querySelector("#result [data-name='requests a minute']").textContent) > 0`)
	until(t, ctx, `document.querySelectorAll("#result [data-name='95%']").length === 2 && document.querySelectorAll(".trend svg .line").length >= 4`)
	until(t, ctx, `/ of \$100.*calls in flight.* a minute.*for all episodes/s.test(document.getElementById("now").textContent)`)
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("the page has %d elements", n)
	}

	if err := play.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = play.Wait()
	quick()
	m.allow(10_000)
	until(t, ctx, `document.querySelector("#now .state").textContent === "cut off" && document.body.textContent.includes("the process that played it was killed")`)
	resume := exec.CommandContext(t.Context(), bin, "run", file, "--quiet")
	if out, err := resume.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	until(t, ctx, `document.querySelector("#now .state").textContent === "complete" && document.body.textContent.includes("300 of 300 episodes")`)

	do(t, ctx, chromedp.Navigate(site+"/run/run.parley/episodes"))
	until(t, ctx, `document.querySelectorAll("#rows tbody tr").length === 100 && `+settled)
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("the page of a hundred episodes has %d elements", n)
	}
	eval[bool](t, ctx, `[...document.querySelectorAll("#rows a.sort")].find((a) => a.textContent === "tokens").click(); true`)
	until(t, ctx, `location.search.includes("sort=tokens") && location.search.includes("desc=1") && document.querySelector("[aria-sort=descending]") !== null && document.querySelectorAll("td[data-name=tokens]").length === 100`)
	if !eval[bool](t, ctx, `(() => { const n = [...document.querySelectorAll("td[data-name=tokens]")].map((c) => Number(c.textContent.replaceAll(",", ""))); return n.length === 100 && n.every((x, i) => i === 0 || n[i-1] >= x); })()`) {
		t.Error("the episodes are not in the order of their tokens")
	}
	if words := eval[[]string](t, ctx, `(() => { const f = document.querySelector("[data-words]"); f.value = "failed ag"; f.dispatchEvent(new Event("input")); return [...f.list.options].map((o) => o.value); })()`); !slices.Contains(words, "failed agent:a") || !slices.Contains(words, "failed points<") {
		t.Errorf("the field suggests %q", words)
	}
	eval[bool](t, ctx, `document.querySelector("input[name=q]").value = "agent:a points>=1 cost<1"; document.querySelector(".find button").click(); true`)
	until(t, ctx, `location.search.includes("q=agent%3Aa") && location.search.includes("sort=tokens") && document.querySelectorAll("#rows .strip path").length > 0`)
	eval[bool](t, ctx, `document.querySelector("#rows tbody a").click(); true`)
	until(t, ctx, `document.querySelectorAll(".said.answer").length === 6`)
	word := eval[string](t, ctx, `document.querySelector(".said.answer > .words").textContent.split(" ").find((w) => /^[a-z]{4,}$/.test(w))`)
	eval[bool](t, ctx, `document.querySelector(".said.answer a").click(); true`)
	until(t, ctx, `document.querySelector("h1").textContent.startsWith("Call ")`)

	visit(t, ctx, site+"/run/run.parley/search")
	eval[bool](t, ctx, `document.querySelector("input[name=q]").value = "`+word+`"; document.querySelector(".find button").click(); true`)
	until(t, ctx, `location.search.includes("q=") && document.querySelectorAll(".hits mark").length > 0`)

	eval[bool](t, ctx, `console.log("all was said"); true`)
	for m, err := range console {
		if err != nil {
			t.Fatal(err)
		}
		if m.Text == "all was said" {
			break
		}
		if !strings.Contains(m.Text, "401") { // the first page, before the browser has signed in
			t.Errorf("the console says: %s %v", m.Text, m)
		}
	}
}
