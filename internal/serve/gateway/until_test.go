package gateway

import (
	"fmt"
	"net/http"
	"testing"

	"parley/internal/run/planner"
)

// TestUntil checks that no session is begun of which enough is known, and that those of others, and those that are open, are served, also after a
// restart.
func TestUntil(t *testing.T) {
	t.Parallel()
	c := Config{Until: &planner.Until{Score: "reward", Width: 0.2, Min: 4, Max: 12, Step: 4}}
	up := script(saying("fine"))
	l := to(t, up, func(of *Config) { of.Until = c.Until; c.Upstreams = of.Upstreams })
	file := l.file
	open := func(l *lab, name, about string) reply { return l.post("/v1/sessions/"+name, about) }
	const agent, other = `{"agent":"careful","condition":"plain","tags":{"tools":"none"}}`, `{"agent":"hasty","condition":"plain"}`
	open(l, "running", agent).want(t, 200)
	play := func(l *lab, name, about string, reward float64) {
		t.Helper()
		open(l, name, about).want(t, 200)
		l.post("/v1/sessions/"+name+"/close", fmt.Sprintf(`{"scores":{"reward":%v}}`, reward)).want(t, 200)
	}
	for i := range 4 { // wide: 0.5 ± 0.9
		play(l, fmt.Sprint("a", i), agent, float64(i%2))
	}
	open(l, "aborted", agent).want(t, 200)
	l.post("/v1/sessions/aborted/close", `{"completion_mode":"abort","scores":{"reward":9}}`).want(t, 200)
	for i := range 4 { // narrow at once
		play(l, fmt.Sprint("b", i), other, 0.5+float64(i)/100)
	}
	check := func(l *lab) {
		t.Helper()
		before := up.count()
		const why = "reward of agent hasty, condition plain is 0.5"
		open(l, "b9", other).want(t, http.StatusConflict, "question_answered", why, "after 4 sessions: no more are wanted")
		l.post("/v1/sessions/b9;agent=hasty;condition=plain/chat/completions", chatOf("m", "hi")).want(t, http.StatusConflict, "question_answered", why)
		if n := up.count() - before; n != 0 {
			t.Errorf("%d calls were made", n)
		}
		l.post("/v1/sessions/running/chat/completions", chatOf("m", "hi")).want(t, 200)
		l.post("/v1/sessions/unnamed/chat/completions", chatOf("m", "hi")).want(t, 200)
		open(l, "a3", agent).want(t, 200) // it exists
	}
	check(l)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	l = startAt(t, c, file)
	check(l)
	for i := range 8 { // until the most that are wanted
		play(l, fmt.Sprint("c", i), agent, float64(i%2))
	}
	open(l, "c9", agent).want(t, http.StatusConflict, "tools none is 0.5", "after 12 sessions")
	l.post("/v1/sessions/running/close", `{"scores":{"reward":1}}`).want(t, 200, "closed")
}

// TestUntilTasks checks that sessions of one task count as one observation.
func TestUntilTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tasks  int
		status int
	}{"one task": {1, 200}, "many tasks": {8, 409}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := to(t, script(saying("fine")), func(c *Config) { c.Until = &planner.Until{Score: "reward", Width: 0.2, Min: 8} })
			for i := range 8 {
				at := fmt.Sprint("/v1/sessions/s", i)
				l.post(at, fmt.Sprintf(`{"agent":"a","task":"t%d"}`, i%c.tasks)).want(t, 200)
				l.post(at+"/close", fmt.Sprintf(`{"scores":{"reward":%v}}`, 0.5+float64(i)/100)).want(t, 200)
			}
			l.post("/v1/sessions/next", `{"agent":"a","task":"new"}`).want(t, c.status)
		})
	}
}

// TestUntilIsChecked checks that a rule without a sense is refused at the start.
func TestUntilIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := newStopRule(&planner.Until{Score: "reward"}, &ledgerContents{}); err == nil {
		t.Error("a rule without a width is taken")
	}
	if _, err := newStopRule(&planner.Until{Width: 1}, &ledgerContents{}); err == nil {
		t.Error("a rule without a score is taken")
	}
}
