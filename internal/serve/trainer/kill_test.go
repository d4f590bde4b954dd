package trainer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, serveAlone) }

// serveAlone serves a run in this process. It plays a few groups more than a client reads before it kills the
// process, and then waits. arg is the number of episodes and the run file.
func serveAlone(arg string) error {
	n, file, _ := strings.Cut(arg, " ")
	episodes, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	l := &lab{file: file, episodes: episodes, ends: make(chan int), done: make(chan struct{})}
	c := l.config()
	if src, err := c.Open(); err == nil {
		begun, _, err := src.Plan(context.Background(), 0)
		if err != nil {
			return err
		}
		ends, err := src.Ends(context.Background(), 1)
		if err != nil {
			return err
		}
		go l.endSome(len(ends))
		c.Begun, c.Resume = begun != nil, begun != nil
		if err := src.Close(); err != nil {
			return err
		}
	} else {
		go l.endSome(0)
	}
	s, err := New(c)
	if err != nil {
		return err
	}
	ln, err := testkit.Listen()
	if err != nil {
		return err
	}
	return s.Run(context.Background(), context.Background(), ln)
}

// endSome ends the next few episodes, with the members of a group far apart: none of the first half completes a
// group.
func (l *lab) endSome(from int) {
	for i := from; i < min(l.episodes, max(from, l.episodes/2)+6); i++ {
		l.end(l.order(i))
	}
}

// order returns the episode that ends as number i.
func (l *lab) order(i int) int {
	half := l.episodes / 2
	if i < half {
		return 2 * i
	}
	return 2*(l.episodes-1-i) + 1
}

// TestKilled kills servers with kill -9 while they play and stream. A client that returns with its last cursor
// gets every row once, in the order of an undisturbed reader.
func TestKilled(t *testing.T) {
	t.Parallel()
	groups := 40
	if testing.Short() {
		groups = 16
	}
	l := newLab(t, 2*groups)
	cursor, kills, midway := "", 0, 0
	var got []string
	for done := false; !done; kills++ {
		server := testkit.Start(t, fmt.Sprintf("%d %s", l.episodes, l.file))
		url := server.Line(t)
		start(t, url)
		cursor, done = readStream(t, url, cursor, 1+kills%5, &got)
		if state(t, url) == Playing {
			midway++
		}
		server.Kill()
		server.Wait()
	}
	s := l.serve(t, func(c *Config) { c.Begun, c.State = true, Complete })
	var want []string
	for _, g := range s.poll("").Groups {
		want = append(want, g.GroupID)
	}
	if !slices.Equal(got, want) || len(want) != groups {
		t.Errorf("%d groups: %v\nwant %d: %v", len(got), got, len(want), want)
	}
	if kills < 5 || midway == 0 {
		t.Errorf("%d kills, %d during play", kills, midway)
	}
}

// readStream reads at most limit groups of a stream.
func readStream(t *testing.T, url, cursor string, limit int, got *[]string) (at string, done bool) {
	t.Helper()
	res, err := http.Get(url + "/v1/stream?cursor=" + cursor)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for in := bufio.NewScanner(res.Body); limit > 0 && in.Scan(); {
		var line struct {
			groupHead
			Done bool
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, in.Text())
		}
		cursor = line.Cursor
		if line.Done {
			return cursor, true
		}
		if line.GroupID != "" {
			*got = append(*got, line.GroupID)
			limit--
		}
	}
	return cursor, false
}

func start(t *testing.T, url string) {
	t.Helper()
	res, err := http.Post(url+"/v1/start", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

func state(t *testing.T, url string) State {
	t.Helper()
	res, err := http.Get(url + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var s status
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.State
}
