package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
)

// slow is a fake whose every answer takes three seconds.
func slow() *fake {
	f := echo()
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) {
		time.Sleep(3 * time.Second)
		return said("at last"), nil
	}
	return f
}

// TestProgress runs 40 slow requests, eight at a time, in a time of its own.
func TestProgress(t *testing.T) {
	t.Parallel()
	in := requests(t, 40)
	synctest.Test(t, func(t *testing.T) {
		got := parley(t, slow().state(), "ask", in, "--budget", "2").want(t, ExitOK)
		golden(t, "progress-lines", got.stderr)
	})
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		s := slow().state()
		s.Args, s.Stderr, s.Stdout = []string{"ask", in}, &stderr, &bytes.Buffer{}
		s.Terminal = func(stream any) int {
			if stream == any(&stderr) {
				return 60
			}
			return 0
		}
		if code := mainWith(t.Context(), s); code != ExitOK {
			t.Fatal(code, stderr.String())
		}
		rows := strings.Split(stderr.String(), wipe)
		if len(rows) < 70 || !strings.HasPrefix(rows[len(rows)-1], "40 answered; 120 tokens in, 80 out; ") {
			t.Errorf("%d rows: %q", len(rows), rows[len(rows)-1])
		}
		for _, row := range rows[:len(rows)-1] {
			if len([]rune(row)) >= 60 {
				t.Errorf("row does not fit: %q", row)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if got := parley(t, slow().state(), "ask", in, "--quiet").want(t, ExitOK); got.stderr != "" {
			t.Errorf("not quiet: %s", got.stderr)
		}
		got := parley(t, slow().state(), "ask", in, "--quiet", "--json").want(t, ExitOK)
		golden(t, "summary-json", got.stderr)
	})
}

// TestProgressWithoutEscapes: a terminal that wants no escapes gets plain lines, as few as
// a file does.
func TestProgressWithoutEscapes(t *testing.T) {
	t.Parallel()
	in := requests(t, 40)
	for _, env := range []map[string]string{{"TERM": "dumb"}, {"NO_COLOR": "1"}} {
		synctest.Test(t, func(t *testing.T) {
			s := terminal(env)
			s.open = slow().state().open
			got := parley(t, s, "ask", in).want(t, ExitOK).stderr
			if strings.ContainsAny(got, "\x1b\r") || strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "24 answered, 82% of the input") {
				t.Errorf("%v: %q", env, got)
			}
		})
	}
}

// TestFitting keeps what matters most, and cuts only where nothing fits.
func TestFitting(t *testing.T) {
	t.Parallel()
	parts := []string{"12 of 100 episodes", "1m30s left", "$0.01 of $5.00", "24 in flight", "1,200 calls/s"}
	for width, want := range map[int]string{
		200: "12 of 100 episodes, 1m30s left, $0.01 of $5.00, 24 in flight, 1,200 calls/s",
		60:  "12 of 100 episodes, 1m30s left, $0.01 of $5.00, 24 in flight",
		45:  "12 of 100 episodes, 1m30s left, 24 in flight",
		18:  "12 of 100 episodes",
		10:  "12 of 100…",
		1:   "…",
	} {
		if got := fitting(parts, width); got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
	if got := fitting([]string{"a\x1b[2J", "b"}, 40); got != `a\u001b[2J, b` {
		t.Errorf("%q", got)
	}
}

// TestWidthIsThatOfTheMoment: a window that was made wider shows more.
func TestWidthIsThatOfTheMoment(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	width := 20
	s := State{Terminal: func(any) int { return width }}
	fill(&s)
	view := newStream(&out, &s)
	view.refresh([]string{"twelve episodes", "one minute left"})
	width = 60
	view.refresh([]string{"twelve episodes", "one minute left"})
	if want := wipe + "twelve episodes" + wipe + "twelve episodes, one minute left"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 12345678: "12,345,678"} {
		if got := number(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
