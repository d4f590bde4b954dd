package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/run/control"
	"parley/journal"
)

// TestSteer pauses a run from its page and changes its budget: after a question, only from pages of this server, and
// only while it is played.
func TestSteer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.parley")
	record(t, path)
	s := serve(t, folder)
	const page = "/run/a.parley"
	pause := url.Values{"verb": {"pause"}}
	if status, body := s.post(page+"/steer", pause); status != http.StatusConflict || !strings.Contains(body, "no process plays this run") {
		t.Errorf("a run that nobody plays: %d %s", status, body)
	}
	if _, body, _ := s.get(page); strings.Contains(body, "Pause") {
		t.Error("a run that nobody plays has a button")
	}

	var got []control.Request
	end, err := control.Serve(t.Context(), path, map[string]control.Handler{control.SteerVerb: func(_ context.Context, args json.RawMessage) (any, error) {
		var r control.Request
		if err := json.Unmarshal(args, &r); err != nil {
			return nil, err
		}
		if r.Verb == journal.SteerDrain {
			return nil, errors.New("not now " + attack)
		}
		got = append(got, r)
		return control.Answer{State: control.Paused}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	hide := control.ShowLive(path, func(now time.Time) control.LiveState {
		return control.LiveState{At: now, Steered: "paused by ctl at 10:31" + attack, Servers: []control.Server{{Provider: "lab", Requests: control.Rate{Limit: 7000, Unknown: true}, Output: control.Rate{Now: 1234}}}}
	})
	for !strings.Contains(func() string { _, body, _ := s.get(page); return body }(), "paused by ctl at 10:31") {
		if t.Context().Err() != nil {
			t.Fatal("the page never shows that the run is paused")
		}
	}
	_, body, _ := s.get(page)
	if !strings.Contains(body, `value="pause">Pause`) || strings.Contains(body, "<script>alert") {
		t.Error("no button, or hostile text:", body)
	}
	for _, want := range []string{`data-name="requests a minute">– <small>of 7,000</small>`, `data-name="output tokens a minute">1,234<`} {
		if !strings.Contains(body, want) {
			t.Errorf("the servers have no %s: %s", want, body)
		}
	}
	if status, body, _ := s.get(page + "/steer?verb=set&budget=20&concurrency=&set=" + url.QueryEscape(attack)); status != http.StatusOK || !strings.Contains(body, `value="budget=20"`) || strings.Contains(body, "<script>alert") || len(got) > 0 {
		t.Errorf("the question: %d %s", status, body)
	}
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Authorization", "Bearer no"}} {
		if status, body := s.post(page+"/steer", pause, header...); status != http.StatusForbidden && status != http.StatusUnauthorized {
			t.Errorf("%v: %d %s", header, status, body)
		}
	}
	if status, _, _ := s.get(page + "/steer?verb=dance"); status != http.StatusBadRequest {
		t.Error("an unknown verb:", status)
	}
	if status, body := s.post(page+"/steer", url.Values{"verb": {"drain"}}); status != http.StatusConflict || !strings.Contains(body, "not now") || strings.Contains(body, "<script>alert") {
		t.Errorf("a refusal: %d %s", status, body)
	}
	s.post(page+"/steer", pause, "Origin", s.url)
	s.post(page+"/steer", url.Values{"verb": {"set"}, "set": {"budget=20"}})
	hide()
	end()
	if len(got) != 2 || got[0].Verb != journal.SteerPause || got[0].By != "view" || !slices.Equal(got[1].Sets, []string{"budget=20"}) {
		t.Errorf("%+v", got)
	}
}
