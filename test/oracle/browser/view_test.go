package browser

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// program builds parley and returns its path.
func program(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "parley")
	build := exec.Command("go", "build", "-o", bin, "./cmd/parley")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// serve starts a command that serves, and returns its address.
func serve(t *testing.T, bin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("it did not start")
	}
	_, url, _ := strings.Cut(lines.Text(), "listening on ")
	return url
}

// waitForFile waits until a file exists.
func waitForFile(t *testing.T, file string) {
	t.Helper()
	for range 200 {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(file + " does not exist")
}

// until waits until a script returns true. It may fail while a page is loaded.
func until(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(() => { try { return `+script+`; } catch { return false; } })()`))
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

// TestRuns looks at a folder of runs: main scores, a fork below its origin, and the search.
func TestRuns(t *testing.T) {
	ctx := tab(t)
	bin := program(t)
	folder := played(t, bin)
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
	if !regexp.MustCompile(`^points a -?[\d.]+ \[-?[\d.]+, -?[\d.]+\] b -?[\d.]+ \[-?[\d.]+, -?[\d.]+\]$`).MatchString(strings.Join(strings.Fields(score), " ")) {
		t.Errorf("the main score is %q", score)
	}
	eval[bool](t, ctx, `document.querySelector("input[name=q]").value = "Diplomacy complete"; document.querySelector(".filters button").click(); true`)
	until(t, ctx, `location.search.includes("q=Diplomacy") && `+row+`.join() === "map.parley"`)

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
	bin, folder := program(t), t.TempDir()
	model := serve(t, bin, "sim", "--addr", "127.0.0.1:0", "--latency", "50ms..150ms")
	plan, file := filepath.Join(folder, "plan.yaml"), filepath.Join(folder, "run.parley")
	text := "kind: secrets\nseed: 1\nproviders: {lab: {dialect: openai, base_url: \"" + model + "/v1\", limits: {rpm: 60000}}}\nprices: prices.json\nbudget: 100\nagents: {a: {model: lab/a, max_tokens: 200}, b: {model: lab/b, max_tokens: 200}}\n" +
		"plan: {matrix: {agents: [a, b], swap: true, self: false, repeat: 150}}\nlimits: {concurrency: 8}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "prices.json"), []byte(`{"models": {"lab/*": {"input": 1, "output": 5}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	play := exec.CommandContext(t.Context(), bin, "run", plan, "--out", file, "--quiet")
	if err := play.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, file)
	site, key, _ := strings.Cut(serve(t, bin, "view", folder), "/#key=")
	do(t, ctx, chromedp.Navigate("about:blank"))
	console := chromedp.Console(ctx)
	do(t, ctx, chromedp.Navigate(site+"/run/run.parley#key="+key))
	const done = `Number(document.querySelector("#now .facts strong").textContent.replaceAll(",", ""))`
	until(t, ctx, `document.querySelector("#now .facts strong") !== null && location.hash === ""`)
	eval[bool](t, ctx, `window.first = `+done+`; window.same = true; true`)
	until(t, ctx, `window.same && `+done+` > window.first + 3`) // the page was not loaded again
	until(t, ctx, `document.getElementById("scores") !== null && document.querySelector(".facts dt").textContent === "ended"`)
	until(t, ctx, `document.body.textContent.includes("calls in flight")`)
	// The process that plays: its servers beside their limits, its models, what it costs, and how it was before.
	until(t, ctx, `[...document.querySelectorAll("#now h2.part")].map((h) => h.textContent).join() === "Servers and their limits,Models, since this process began"`)
	until(t, ctx, `document.querySelectorAll("#now [data-name='requests a minute'] progress").length === 1 && parseFloat(document.querySelector("#now [data-name='requests a minute']").textContent) > 0`)
	until(t, ctx, `document.querySelectorAll("#now [data-name='95%']").length === 2 && document.querySelectorAll(".trend svg .line").length >= 4`)
	until(t, ctx, `[...document.querySelectorAll("#now dt")].map((d) => d.textContent).join().includes("budget,cost a minute,cost of all episodes")`)
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("the page has %d elements", n)
	}

	if err := play.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = play.Wait()
	until(t, ctx, `document.querySelector("#now .state").textContent === "cut off" && document.body.textContent.includes("the process that played it was killed")`)
	resume := exec.CommandContext(t.Context(), bin, "run", file, "--quiet")
	if out, err := resume.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	until(t, ctx, `document.querySelector("#now .state").textContent === "complete" && document.body.textContent.includes("300 of 300 episodes")`)

	do(t, ctx, chromedp.Navigate(site+"/run/run.parley/episodes"))
	until(t, ctx, `document.querySelectorAll("#rows tbody tr").length === 100`)
	eval[bool](t, ctx, `document.querySelector("select[name=sort]").value = "tokens"; document.querySelector("input[name=desc]").checked = true; document.querySelector(".filters button").click(); true`)
	until(t, ctx, `location.search.includes("sort=tokens") && location.search.includes("desc=1") && document.querySelector("[aria-sort=descending]") !== null && document.querySelectorAll("td[data-name=tokens]").length === 100`)
	if !eval[bool](t, ctx, `(() => { const n = [...document.querySelectorAll("td[data-name=tokens]")].map((c) => Number(c.textContent.replaceAll(",", ""))); return n.length === 100 && n.every((x, i) => i === 0 || n[i-1] >= x); })()`) {
		t.Error("the episodes are not in the order of their tokens")
	}
	eval[bool](t, ctx, `document.querySelector("#rows tbody a").click(); true`)
	until(t, ctx, `document.querySelectorAll(".said.answer").length === 6`)
	word := eval[string](t, ctx, `document.querySelector(".said.answer > .words").textContent.split(" ").find((w) => /^[a-z]{4,}$/.test(w))`)
	eval[bool](t, ctx, `document.querySelector(".said.answer a").click(); true`)
	until(t, ctx, `document.querySelector("h1").textContent.startsWith("Call ")`)

	do(t, ctx, chromedp.Navigate(site+"/run/run.parley/search"))
	eval[bool](t, ctx, `document.querySelector("input[name=q]").value = "`+word+`"; document.querySelector(".filters button").click(); true`)
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
