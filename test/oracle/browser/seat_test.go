package browser

import (
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestSeat sits down in a game of Diplomacy with the link of a seat, and plays it to its end: it chooses a unit on the
// map, gives orders, and is told what is wrong with an answer.
func TestSeat(t *testing.T) {
	ctx := tab(t)
	bin, folder := program(t), t.TempDir()
	plan, file := filepath.Join(folder, "plan.yaml"), filepath.Join(folder, "run.parley")
	if err := os.WriteFile(plan, []byte(board("human, deadline: 10m")), 0o600); err != nil {
		t.Fatal(err)
	}
	play := exec.CommandContext(t.Context(), bin, "run", plan, "--out", file, "--quiet")
	if err := play.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = play.Process.Kill(); _ = play.Wait() })
	waitForFile(t, file+"-seats")
	site, key, _ := strings.Cut(serve(t, bin, "view", folder), "/#key=")
	do(t, ctx, chromedp.Navigate(linkOf(t, site, key)))
	until(t, ctx, `document.querySelector("h1").textContent === "Seat FRANCE" && location.hash === ""`)
	if eval[bool](t, ctx, `document.querySelector("nav") !== null || document.body.textContent.includes("run.parley")`) {
		t.Error("the page shows more than the seat")
	}
	until(t, ctx, `document.querySelector("#seat-asked").textContent.includes("message")`)
	eval[bool](t, ctx, `document.querySelector("[name='f0.0.1']").value = "Hello <b>Berlin</b>"; document.querySelector(".seat-form button").click(); true`)
	until(t, ctx, `document.querySelector("[role=alert]") !== null && document.querySelector("[name='f0.0.1']").value === "Hello <b>Berlin</b>"`)
	eval[bool](t, ctx, `document.querySelector("[name='f0.0.0']").value = "GERMANY"; document.querySelector(".seat-form button").click(); true`)
	until(t, ctx, `document.querySelector("#seat-asked").textContent.includes("orders")`)
	until(t, ctx, `document.querySelectorAll(".seat-picture [data-at][role=button]").length === 3 && !document.getElementById("seat-clock").hidden`)
	for _, size := range [][2]int64{{1280, 800}, {360, 800}} {
		do(t, ctx, chromedp.EmulateViewport(size[0], size[1]))
		for _, part := range []string{"#seat-clock", ".seat-new", ".seat-picture svg", ".seat-form :is(select, textarea)"} {
			if at := eval[float64](t, ctx, `(() => { scrollTo(0, 0); const at = document.querySelector("`+part+`").getBoundingClientRect(); return at.height > 0 ? at.top : 1e6; })()`); at < 0 || at > float64(size[1])-40 {
				t.Errorf("at %d, %s is at %g: it is not on the first screen", size[0], part, at)
			}
		}
	}
	if new := eval[string](t, ctx, `document.querySelector(".seat-new .words").textContent`); !strings.Contains(new, "to you:") || strings.Contains(new, "You play one power") {
		t.Errorf("new since the last answer: %s", new)
	}
	eval[bool](t, ctx, `document.querySelector(".seat-picture [data-at=PAR]").dispatchEvent(new MouseEvent("click", { bubbles: true })); true`)
	until(t, ctx, `document.activeElement.closest("p").dataset.for === "PAR"`)
	eval[bool](t, ctx, `document.querySelector(".seat-picture [data-at=BRE]").focus(); document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })); true`)
	until(t, ctx, `document.activeElement.closest("p").dataset.for === "BRE"`)
	eval[bool](t, ctx, `document.querySelector("p[data-for=PAR] select").value = "A PAR - BUR"; document.querySelector(".seat-form button").click(); true`)
	until(t, ctx, `document.body.textContent.includes("The game is over.") && document.querySelector("#seat-past").textContent.includes("A PAR - BUR")`)
	if err := play.Wait(); err != nil {
		t.Error(err)
	}
}

// board is a plan of a short game of Diplomacy with this model in the seat of France.
func board(france string) string {
	return "kind: diplomacy\nagents: {me: {model: " + france + "}, crowd: sim/small}\n" +
		"lineup: {AUSTRIA: crowd, ENGLAND: crowd, FRANCE: me, GERMANY: crowd, ITALY: crowd, RUSSIA: crowd, TURKEY: crowd}\nparams: {rounds: 1, end_phase: S1901M, diary: false}\n"
}

// linkOf returns the link of the only seat, from the page of the owner.
func linkOf(t *testing.T, site, key string) string {
	t.Helper()
	body := fetch(t, site+"/run/run.parley/seats", key)
	m := regexp.MustCompile(`href="([^"]*#key=[^"]*)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no link: %s", body)
	}
	return site + html.UnescapeString(m[1])
}

// fetch returns a page of a viewer, as its owner sees it.
func fetch(t *testing.T, address, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", address, resp.Status, err, b)
	}
	return string(b)
}
