package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// recordMarket writes a run of a world that this program does not know: three days of eight turns, each with a price, and votes at the end.
func recordMarket(t *testing.T, path string) {
	t.Helper()
	store, err := runfile.Open(t.Context(), path, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	note := func(kind string, data any) world.Note {
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return world.Note{Kind: kind, Data: b}
	}
	spec := world.Spec{Kind: "market", Lineup: map[string]string{"seller": "a"}}
	entries := []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "market", KindVersion: 1, At: at, Plan: []byte(`{}`), Agents: []world.Agent{{Name: "a", Model: "lab/a"}}},
		&journal.Opened{At: at}, &journal.Staged{Specs: world.List(spec)},
	}
	for i := range 24 {
		turned := &journal.Turned{Turn: journal.Turn{Turn: i}, Calls: 1}
		if i%8 == 0 {
			turned.Notes = append(turned.Notes, note("phase", fmt.Sprintf("day %d", i/8+1)))
		}
		turned.Notes = append(turned.Notes, note("price", map[string]float64{"apples": float64(i), "pears": 30 - float64(i)}))
		if i == 23 {
			turned.Notes = append(turned.Notes, note("vote", map[string]string{"ann": "close", "bob": "go on"}))
		}
		entries = append(entries, turned, &journal.Replied{
			Turn: turned.Turn, Seat: "seller", Label: "say", Agent: "a", At: at.Add(time.Duration(i) * time.Second),
			Request: &llm.Request{Model: "lab/a", Messages: []llm.Message{llm.User("Your price?")}}, Response: &llm.Response{Text: fmt.Sprintf("I sell at %d.", i), Finish: llm.FinishStop},
		})
	}
	entries = append(entries, &journal.Ended{At: at.Add(time.Hour), Outcome: world.Outcome{Scores: []world.Score{{Seat: "seller", Name: "profit", Value: 1}}}}, &journal.Closed{At: at.Add(time.Hour), State: journal.Complete})
	if err := errors.Join(store.Append(t.Context(), entries...), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestReading reads episodes from their beginning to their end: what stands beside the text moves with it, on every part of a long
// episode, and the rail leads to phases.
func TestReading(t *testing.T) {
	ctx, bin, folder := tab(t), program(t), played(t)
	recordMarket(t, filepath.Join(folder, "market.parley"))
	for _, name := range []string{"scenario/plan", "rollout"} {
		plan, file := filepath.Join("../../../examples", name+".yaml"), filepath.Join(folder, strings.ReplaceAll(name, "/", "-")+".parley")
		if out, err := exec.Command(bin, "run", plan, "--set", "episodes=1", "--out", file, "--quiet").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, out)
		}
	}
	site, key, _ := strings.Cut(serve(t, bin, "view", folder), "/#key=")
	do(t, ctx, chromedp.EmulateViewport(1400, 500), chromedp.Navigate(site+"/run/market.parley/episodes/0#key="+key))
	until(t, ctx, settled+` && location.hash === "" && document.querySelectorAll("#story line.now").length === 1`)
	const now = `Number(document.querySelector("#story line.now").getAttribute("x1")?.replace("%", ""))`
	until(t, ctx, `document.querySelector("#story line.now").getAttribute("visibility") === null`)
	if got := eval[[]string](t, ctx, `[...document.querySelectorAll(".rail a")].map((a) => a.textContent + (a.getAttribute("aria-current") === "true" ? " is read" : ""))`); strings.Join(got, ", ") != "day 1 is read, day 2, day 3" {
		t.Errorf("the rail: %q", got)
	}
	if got := eval[string](t, ctx, `[...document.querySelectorAll("#story figure")].map((f) => f.querySelector("h3").textContent + " " + f.querySelectorAll(".drawing .line, tbody tr").length).join()`); !strings.HasPrefix(got, "price 2,vote 2,") {
		t.Errorf("beside the text: %s", got)
	}
	eval[bool](t, ctx, `window.before = `+now+`; document.querySelectorAll(".rail a")[1].click(); true`)
	until(t, ctx, `document.querySelectorAll(".rail a")[1].getAttribute("aria-current") === "true" && location.hash === document.querySelectorAll(".rail a")[1].hash`)
	until(t, ctx, `document.querySelector(location.hash).textContent.startsWith("day 2") && Math.abs(document.querySelector(location.hash).getBoundingClientRect().top) < innerHeight / 3`)
	until(t, ctx, now+` > window.before + 20 && document.querySelector("#story .replay output").textContent.includes("Turn 8 · day 2")`)

	const frame, move = `document.querySelector("#story .replay output").textContent`, `document.documentElement.style.scrollBehavior = "auto"; `
	for _, page := range []string{"/run/scenario-plan.parley/episodes/0", "/run/rollout.parley/episodes/0"} {
		visit(t, ctx, site+page)
		until(t, ctx, settled+` && document.querySelector("#story .replay output") !== null`)
		eval[bool](t, ctx, move+`window.first = `+frame+`; scrollTo(0, document.body.scrollHeight); true`)
		until(t, ctx, frame+` !== window.first`)
		eval[bool](t, ctx, `scrollTo(0, 0); true`)
		until(t, ctx, frame+` === window.first`)
	}

	// Who steps through a replay keeps its frame while the page scrolls, until it follows the text again. An address can name a frame.
	const follow = `document.querySelector("#story [data-follow]")`
	eval[bool](t, ctx, `document.querySelector("#story [data-step='1']").click(); window.own = `+frame+`; scrollTo(0, document.body.scrollHeight); document.dispatchEvent(new Event("scroll")); true`)
	if got := eval[string](t, ctx, `[window.own !== window.first, `+frame+` === window.own, `+follow+`.hidden].join()`); got != "true,true,false" {
		t.Errorf("another frame, which stays, and a button: %s", got)
	}
	eval[bool](t, ctx, follow+`.click(); true`)
	until(t, ctx, frame+` !== window.own && `+follow+`.hidden`)
	visit(t, ctx, site+"/run/rollout.parley/episodes/0#frame=Step%202")
	until(t, ctx, frame+`.endsWith(": Step 2") && !`+follow+`.hidden`)

	visit(t, ctx, site+"/run/rollout.parley/episodes/0?text=markdown#frame=%E0%A4%A") // a broken escape stops nothing
	until(t, ctx, frame+`.startsWith("1 of ") && !document.getElementById("theme").hidden`)

	visit(t, ctx, site+"/run/map.parley/episodes/0?from=end")
	until(t, ctx, settled+` && document.querySelector("#story .board svg") !== null`)
	eval[bool](t, ctx, move+`scrollTo(0, document.body.scrollHeight); true`)
	until(t, ctx, `(() => { const read = [...document.querySelectorAll("#said .phase bdi")].map((p) => p.textContent); return read.some((name) => `+frame+`.endsWith(": " + name)); })()`)
}
