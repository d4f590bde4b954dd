package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
)

// slow returns a fake that takes three seconds for each answer.
func slow() *fake {
	f := echo()
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) {
		time.Sleep(3 * time.Second)
		return said("at last"), nil
	}
	return f
}

// TestProgress runs 40 slow requests, eight at a time, in synthetic time.
func TestProgress(t *testing.T) {
	t.Parallel()
	in := requests(t, 40)
	synctest.Test(t, func(t *testing.T) {
		got := parley(t, slow().state(), "ask", "--model", "sim/small", in, "--budget", "2").want(t, exit.OK)
		golden(t, "progress-lines", got.stderr)
	})
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		s := slow().state()
		s.Args, s.Stderr, s.Stdout = []string{"ask", "--model", "sim/small", in}, &stderr, &bytes.Buffer{}
		s.Terminal = func(stream any) int {
			if stream == any(&stderr) {
				return 60
			}
			return 0
		}
		if code := mainWith(t.Context(), s); code != exit.OK {
			t.Fatal(code, stderr.String())
		}
		rows := strings.Split(stderr.String(), terminal.Wipe)
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
		if got := parley(t, slow().state(), "ask", "--model", "sim/small", in, "--quiet").want(t, exit.OK); got.stderr != "" {
			t.Errorf("not quiet: %s", got.stderr)
		}
		got := parley(t, slow().state(), "ask", "--model", "sim/small", in, "--quiet", "--json").want(t, exit.OK)
		golden(t, "summary-json", got.stderr)
	})
}

// TestProgressWithoutEscapes checks that a terminal without escapes gets as few plain lines as a file.
func TestProgressWithoutEscapes(t *testing.T) {
	t.Parallel()
	in := requests(t, 40)
	for _, env := range []map[string]string{{"TERM": "dumb"}, {"NO_COLOR": "1"}} {
		synctest.Test(t, func(t *testing.T) {
			s := atTerminal(env)
			s.open = slow().state().open
			got := parley(t, s, "ask", "--model", "sim/small", in).want(t, exit.OK).stderr
			if strings.ContainsAny(got, "\x1b\r") || strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "24 answered, 82% of the input") {
				t.Errorf("%v: %q", env, got)
			}
		})
	}
}
