package gateway

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// leave closes the connections of a client, and waits until the gateway has noticed.
func (l *lab) leave() {
	l.client.CloseIdleConnections()
	for !strings.Contains(l.post("/v1/sessions/s", "").body, `"connections":0`) {
		runtime.Gosched()
	}
}

// talk is a chat completion of a conversation.
func talk(words ...string) string {
	var messages []string
	for i, w := range words {
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], w))
	}
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
}

// TestPrograms lets several programs use one name in one process of the gateway. It checks which episode each
// call belongs to, and that doubtful cases are reported once.
func TestPrograms(t *testing.T) {
	t.Parallel()
	const gone = "" // the program ends, and its connections with it
	first, second, third := talk("Go."), talk("Go.", "fine", "On."), talk("Another question.")
	for name, c := range map[string]struct {
		calls    []string
		episodes string
		messages []string
	}{
		"two games":               {[]string{first, second, gone, first, second}, "0 0 1 1", []string{"episode 1 begins, and episode 0 is left"}},
		"three games":             {[]string{first, third, gone, first, third, gone, first}, "0 0 1 1 2", []string{"episode 1 begins", "episode 2 begins"}},
		"a retry":                 {[]string{first, first, second, second}, "0 0 0 0", nil},
		"a new retry":             {[]string{first, gone, first, gone, second, gone, second}, "0 0 0 0", nil},
		"a connection a call":     {[]string{first, gone, second, gone, talk("Go.", "fine", "On.", "fine", "Go.")}, "0 0 0", nil},
		"samples, with one left":  {[]string{first, third, first, third, first}, "0 0 0 0 0", []string{"the first call is asked again and goes to episode 0 too"}},
		"questions, connected":    {[]string{first, third, talk("More?")}, "0 0 0", nil},
		"another program":         {[]string{first, second, gone, third, gone, talk("More?")}, "0 0 0 0", []string{"continues nothing and goes to episode 0 too"}},
		"another, then the first": {[]string{first, gone, third, gone, first}, "0 0 1", []string{"continues nothing", "episode 1 begins"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard messages
			l := to(t, script(saying("fine")), func(c *Config) { c.Tell = heard.tell })
			var episodes []string
			for _, body := range c.calls {
				if body == gone {
					l.leave()
					continue
				}
				episodes = append(episodes, l.post(chatPath, body).want(t, 200).header.Get("X-Parley-Episode"))
			}
			if got := strings.Join(episodes, " "); got != c.episodes {
				t.Errorf("episodes %s, want %s", got, c.episodes)
			}
			heard.want(t, len(c.messages), c.messages...)
			notes := 0
			for i, call := range l.calls("s") {
				if fmt.Sprint(call.Episode) != episodes[i] {
					t.Errorf("call %d is recorded in episode %d, and %s was told", i, call.Episode, episodes[i])
				}
				if call.Note != "" {
					notes++
				}
			}
			if notes != len(c.messages) {
				t.Errorf("%d notes are recorded, want %d", notes, len(c.messages))
			}
		})
	}
}

// TestWorkers lets the workers of one program share a session. A worker that begins with the same question as
// the others is not another program.
func TestWorkers(t *testing.T) {
	t.Parallel()
	const workers = 8
	var here sync.WaitGroup
	here.Add(workers)
	busy, release := make(chan struct{}), make(chan struct{})
	var heard messages
	l := to(t, script(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Step") {
		case "together":
			here.Done()
			here.Wait()
		case "long":
			close(busy)
			<-release
		}
		saying("fine")(w, r)
	}), func(c *Config) { c.Tell, c.Upstreams[0].Limits.Concurrency = heard.tell, workers })
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			l.post(chatPath, talk("Go."), "X-Step", "together").want(t, 200)
			l.post(chatPath, talk("Go.", "fine", fmt.Sprint("I am ", i))).want(t, 200)
		})
	}
	wg.Wait()
	wg.Go(func() { l.post(chatPath, talk("Go.", "fine", "A long story."), "X-Step", "long").want(t, 200) })
	<-busy
	l.post(chatPath, talk("Go.")).want(t, 200)
	close(release)
	wg.Wait()
	for _, c := range l.calls("s") {
		if c.Episode != 0 {
			t.Errorf("episode %d", c.Episode)
		}
	}
	heard.want(t, 0)
}

// TestProgramResumed resumes a program after a restart of the gateway: it continues its episode. If it runs
// once more, it is another program.
func TestProgramResumed(t *testing.T) {
	t.Parallel()
	up := script(saying("fine"))
	l := to(t, up)
	l.post(chatPath, talk("Go."))
	l.post(chatPath, talk("Go.", "fine", "On."))
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	var heard messages
	again := startAt(t, Config{Upstreams: l.g.cfg.Upstreams, Resume: true, Tell: heard.tell}, l.file)
	for range 2 {
		again.post(chatPath, talk("Go."))
		again.post(chatPath, talk("Go.", "fine", "On."))
		again.post(chatPath, talk("Go.", "fine", "On.", "fine", "End."))
		again.leave()
	}
	if calls := again.calls("s"); len(calls) != 6 || calls[2].Episode != 0 || calls[3].Episode != 1 || up.count() != 6 {
		t.Errorf("%d calls were asked; recorded: %+v", up.count(), calls)
	}
	heard.want(t, 1, "episode 1 begins, and episode 0 is left")
}
