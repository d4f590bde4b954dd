package cli

import (
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// firstLine sends the first write to a channel.
type firstLine struct{ line chan string }

func (f *firstLine) Write(p []byte) (int, error) {
	f.line <- string(p)
	return len(p), nil
}

// TestSimServesAsk asks the served simulation in each wire format over HTTP.
func TestSimServesAsk(t *testing.T) {
	t.Parallel()
	url, stop := serves(t, nil, "sim")
	for _, dialect := range []string{"openai", "responses", "anthropic"} {
		got := parley(t, State{}, "ask", "--model", "lab/echo", "--base-url", url+"/v1", "--dialect", dialect, "say this").want(t, exit.OK)
		if got.stdout != "say this\n" {
			t.Errorf("%s: %q", dialect, got.stdout)
		}
	}
	in := requests(t, 50)
	got := parley(t, State{}, "ask", "--model", "lab/any", "--base-url", url+"/v1", in).want(t, exit.OK)
	wantAnswers(t, got.stdout, 50)
	stop().want(t, exit.OK).wantErr(t, "53 requests, 53 answered, 0 rate-limited")
}

// TestStandInsAnswer checks that the simulated provider has the stand-ins of the kinds, in this process and over
// HTTP.
func TestStandInsAnswer(t *testing.T) {
	t.Parallel()
	url, stop := serves(t, nil, "sim")
	for _, args := range [][]string{{"--model", "sim/flat"}, {"--model", "lab/flat", "--base-url", url + "/v1"}} {
		got := parley(t, State{}, append(append([]string{"ask"}, args...), "A mill has 12 sacks in the morning. How many sacks are there at the end?")...).want(t, exit.OK)
		if !strings.HasPrefix(got.stdout, "There are ") || !strings.HasSuffix(got.stdout, " at the end.\n") {
			t.Errorf("%v: %q", args, got.stdout)
		}
	}
	stop().want(t, exit.OK)
}

// TestSimFaults asks a server with limits and faults: every request is answered.
func TestSimFaults(t *testing.T) {
	t.Parallel()
	url, stop := serves(t, nil, "sim", "--faults", "error500=0.2", "--json")
	got := parley(t, State{}, "ask", "--model", "lab/any", "--base-url", url+"/v1", "--retries", "50", requests(t, 30)).want(t, exit.OK)
	wantAnswers(t, got.stdout, 30)
	stop().want(t, exit.OK).wantErr(t, `"faults":{"error500":`)
}

func TestSimUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--addr", "nowhere:99999"}, []string{"99999"}},
		{[]string{"--latency", "soon"}, []string{"--latency", "lognormal:800ms,0.6"}},
		{[]string{"--faults", "gremlins=1"}, []string{"--faults", "gremlins"}},
		{[]string{"--faults", "reset"}, []string{"--faults", "name=probability"}},
		{[]string{"--min-tokens", "9", "--max-tokens", "3"}, []string{"at least 9"}},
		{[]string{"--key-env", "PARLEY_TEST_NOT_SET"}, []string{"PARLEY_TEST_NOT_SET"}},
	} {
		parley(t, State{}, append([]string{"sim"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.says...)
	}
}
