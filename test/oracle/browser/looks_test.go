package browser

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write how pages look to testdata/looks.json")

// near reports whether two parts look the same: what it is, where it begins and how wide it is, in 24ths of the window, and its colours.
// Letters are not as wide on every machine.
func near(a, b string) bool {
	const room = 1
	var what, colours [2]string
	var left, width [2]int
	for i, text := range []string{a, b} {
		if _, err := fmt.Sscanf(text, "%s %d+%d %s", &what[i], &left[i], &width[i], &colours[i]); err != nil {
			return false
		}
	}
	apart := func(n [2]int) bool { return max(n[0], n[1])-min(n[0], n[1]) > room }
	return what[0] == what[1] && colours[0] == colours[1] && !apart(left) && !apart(width)
}

// TestLooks compares the parts of pages, their places and colours with those that somebody has looked at. Heights do not count.
// go -C test/oracle test ./browser -run TestLooks -update writes them: look at the pages before you commit that.
func TestLooks(t *testing.T) {
	ctx, folder := tab(t), played(t)
	recordMarket(t, filepath.Join(folder, "market.parley"))
	site, key, _ := strings.Cut(serve(t, program(t), "view", folder), "/#key=")
	do(t, ctx, chromedp.Navigate(site+"/#key="+key))
	until(t, ctx, `document.getElementById("t-runs") !== null && location.hash === ""`)
	got := map[string][]string{}
	for _, page := range []string{
		"/", "/run/one.parley", "/run/two.parley", "/run/one.parley/episodes", "/run/one.parley/episodes/3", "/run/map.parley/episodes/0?story=1", "/run/market.parley/episodes/0", "/run/one.parley/episodes/3/0:0", "/run/one.parley/search",
		"/compare?a=one.parley&ea=0&b=one.parley&eb=1",
	} {
		for _, scheme := range []string{"light", "dark"} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
				t.Fatal(err)
			}
			for _, width := range []int64{360, 1280, 2560} {
				if scheme == "dark" && width != 1280 {
					continue
				}
				do(t, ctx, chromedp.EmulateViewport(width, 900))
				visit(t, ctx, site+page)
				if strings.HasSuffix(page, ".parley") {
					until(t, ctx, settled+` && document.getElementById("scores") !== null`)
				}
				got[fmt.Sprintf("%s, %d, %s", page, width, scheme)] = eval[[]string](t, ctx, `[...document.querySelectorAll("header, nav, h1, h2, h3, form, .verdict, .facts, .facts > div, .picture-of, figure, .reading > *, .said, .scroll")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().width > 4).slice(0, 30).filter((e) => !e.matches(".said")).map((e) => { // what was said comes in the order in which it arrived
					const at = e.getBoundingClientRect(), style = getComputedStyle(e), part = (x) => Math.round(24 * x / innerWidth);
					const what = e.tagName.toLowerCase() + (e.id ? "#" + e.id : [...e.classList].map((c) => "." + c).join(""));
					return what + " " + part(at.left) + "+" + part(at.width) + " " + (style.color + "/" + style.backgroundColor).replaceAll(" ", "");
				})`)
			}
		}
	}
	file := filepath.Join("testdata", "looks.json")
	if *update {
		b, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d pages, want %d", len(got), len(want))
	}
	for name, boxes := range got {
		if len(boxes) != len(want[name]) {
			t.Errorf("%s: %d parts, want %d", name, len(boxes), len(want[name]))
			continue
		}
		for i, b := range boxes {
			if !near(b, want[name][i]) {
				t.Errorf("%s: %s, want %s", name, b, want[name][i])
				break
			}
		}
	}
}
