package rules

import (
	"slices"
	"strings"
	"testing"
)

// TestStale checks what happens to an episode whose answers come from weights that are too far apart.
func TestStale(t *testing.T) {
	t.Parallel()
	versions := func(all ...string) map[int]string {
		out := map[int]string{}
		for i, v := range all {
			out[i] = v
		}
		return out
	}
	for _, c := range []struct {
		params  string
		weights map[int]string
		stop    Stop
		acts    string
	}{
		{`{}`, versions("1", "9", "20"), StopTerminated, "open 0 step 0/1 step 0/2 step 0/3"},
		{`{"max_staleness":1}`, versions("1", "2", "2"), StopTerminated, "open 0 step 0/1 step 0/2 step 0/3"},
		{`{"max_staleness":1}`, versions("1", "2", "3"), StopFailed, "open 0 step 0/1 step 0/2 close"},
		{`{"max_staleness":1}`, versions("3", "2", "1"), StopFailed, "open 0 step 0/1 step 0/2 close"},
		{`{"max_staleness":0}`, versions("a", "", "b"), StopTerminated, "open 0 step 0/1 step 0/2 step 0/3"},
		{`{"max_staleness":0,"stale":"restart"}`, versions("1", "2", "2", "2", "2"), StopTerminated, "open 0 step 0/1 close open 1 step 1/1 step 1/2 step 1/3"},
		{`{"max_staleness":0,"stale":"restart","retries":1}`, versions("1", "2", "3", "4"), StopFailed, "open 0 step 0/1 close open 1 step 1/1 close"},
	} {
		s := &script{steps: []Result{{}, {}, {Terminated: true}}, weights: c.weights}
		o, d := play(t, c.params, nil, s)
		if acts := strings.Join(s.acts, " "); d.Stop != c.stop || acts != c.acts {
			t.Errorf("%s %v: %s (%s): %s, want %s: %s", c.params, c.weights, d.Stop, o.Failed, acts, c.stop, c.acts)
		}
		trainable := slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Trainable })
		if failed := c.stop == StopFailed; failed != strings.Contains(o.Failed, "params.max_staleness") || failed == trainable {
			t.Errorf("%s: failed %q, trainable %t", c.params, o.Failed, trainable)
		}
	}
}
