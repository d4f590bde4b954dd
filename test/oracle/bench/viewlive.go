package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// viewLag measures how long it takes until an open page shows that an episode has ended.
func (b *bench) viewLag() (string, error) {
	const ends = 30
	path := filepath.Join(b.dir, "lag.parley")
	ctx := context.Background()
	store, err := runfile.Open(ctx, path, runfile.Create)
	if err != nil {
		return "", err
	}
	defer store.Close()
	err = store.Append(ctx, &journal.Begun{Version: journal.Version, Run: "lag", Kind: "duel", KindVersion: 1, Plan: []byte(`{}`)}, &journal.Opened{At: time.Now()}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, 1000)})
	if err != nil {
		return "", err
	}
	tab, end, err := openBrowser()
	if err != nil {
		return "", err
	}
	defer end()
	w, err := b.viewer(path)
	if err != nil {
		return "", err
	}
	defer w.stop()
	if err := w.signIn(tab, "/run/lag.parley"); err != nil {
		return "", err
	}
	if err := awaited(tab, `document.getElementById("live").textContent === "following"`); err != nil {
		return "", err
	}
	const watch = `window.seen = []; setInterval(() => { const n = Number(document.querySelector("#now [data-done]").textContent); while (seen.length < n) seen.push(Date.now()); }, 5); true`
	if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](watch)); err != nil {
		return "", err
	}
	var at [ends]int64
	for i := range at {
		turn := journal.Turn{Episode: i}
		if err := store.Append(ctx, &journal.Turned{Turn: turn, Calls: 1}, viewReply(turn, "first", i, nil), &journal.Ended{Episode: i, At: time.Now()}); err != nil {
			return "", err
		}
		at[i] = time.Now().UnixMilli()
		time.Sleep(370 * time.Millisecond)
	}
	if err := awaited(tab, fmt.Sprintf("window.seen.length >= %d", ends)); err != nil {
		return "", err
	}
	seen, err := chromedp.Run(tab, chromedp.Evaluate[[]int64](`window.seen`))
	if err != nil {
		return "", err
	}
	lags := make([]int64, ends)
	for i := range lags {
		lags[i] = seen[i] - at[i]
	}
	slices.Sort(lags)
	return fmt.Sprintf("%.2f s, at most %.2f s", float64(lags[ends/2])/1000, float64(lags[ends-1])/1000), nil
}

// viewBeside measures how many calls a second a run makes with five open pages, beside the same run without.
func (b *bench) viewBeside() (string, error) {
	const episodes, rounds, pages = 2000, 3, 5
	s, err := b.sim("--latency", "100ms")
	if err != nil {
		return "", err
	}
	defer s.stop()
	dir := filepath.Join(b.dir, "beside")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	plan := filepath.Join(b.dir, "beside.yaml")
	if err := os.WriteFile(plan, []byte(secretsPlan(s.url, episodes, rounds)+"limits: {concurrency: 64}\n"), 0o600); err != nil {
		return "", err
	}
	var ratios []float64
	for range 3 {
		var rates [2]float64
		for i, open := range []int{0, pages} {
			if rates[i], err = b.besidePages(s, plan, filepath.Join(dir, "run.parley"), open); err != nil {
				return "", err
			}
		}
		ratios = append(ratios, rates[1]/rates[0])
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", ratios[1], ratios[0], ratios[2]), nil
}

// When calls are counted, from the start of a run: the pages are open by then, and starting a browser is not what is measured.
const besideFrom, besideFor = 5 * time.Second, 10 * time.Second

// besidePages plays a plan while some pages show it, and returns how many calls a second it made.
func (b *bench) besidePages(s *server, plan, file string, pages int) (rate float64, err error) {
	for _, suffix := range []string{"", "-wal", "-shm", "-view", "-view-wal", "-view-shm", "-live"} {
		_ = os.Remove(file + suffix)
	}
	var tabs []context.Context
	var w *watcher
	if pages > 0 {
		tab, end, err := openBrowser()
		if err != nil {
			return 0, err
		}
		defer end()
		if w, err = b.viewer(filepath.Dir(file)); err != nil {
			return 0, err
		}
		defer w.stop()
		if err := w.signIn(tab, "/"); err != nil {
			return 0, err
		}
		for tabs = append(tabs, tab); len(tabs) < pages; {
			next, cancel := chromedp.NewContext(tab)
			defer cancel()
			tabs = append(tabs, next)
		}
	}
	began := time.Now()
	cmd := exec.Command(b.parley, "run", plan, "--out", file, "--quiet")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for i, tab := range tabs {
		page := []string{"", "/episodes", "/episodes?sort=cost&desc=1", "/episodes/0", "/search?q=the"}[i]
		for range 100 {
			if _, err := w.get("/run/run.parley"); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		err := chromedp.Do(tab, chromedp.Navigate(w.site+"/run/run.parley"+page))
		for range 3 {
			if err == nil {
				break
			}
			err = chromedp.Do(tab, chromedp.Navigate(w.site+"/run/run.parley"+page)) // the page was just replaced by another
		}
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return 0, err
		}
	}
	rate, err = besideRate(s, began)
	return rate, errors.Join(err, cmd.Wait())
}

// besideRate returns how many calls a second a provider answers, from besideFrom after the start of a run on.
func besideRate(s *server, began time.Time) (float64, error) {
	if late := time.Since(began) - besideFrom; late > 0 {
		return 0, fmt.Errorf("the pages were open %v too late", late)
	}
	time.Sleep(time.Until(began.Add(besideFrom)))
	before, err := s.stats()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	time.Sleep(besideFor)
	after, err := s.stats()
	return float64(after.OK-before.OK) / time.Since(from).Seconds(), err
}
