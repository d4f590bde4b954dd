package text

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for _, c := range []struct {
		a, b any
		want string // key, a and b; empty: none
	}{
		{object{"x": 1}, object{"x": 1}, ""},
		{object{"x": 1}, object{"x": 2}, "k.x 1 2"},
		{object{"x": object{"y": 1, "z": 1}}, object{"x": object{"y": 1, "z": nil}}, "k.x.z 1 not set"},
		{object{"x": 1}, object{"x": 1, "a": "b"}, `k.a not set "b"`},
		{object{"x": []int{1}}, object{"x": []int{1, 2}}, "k.x [1] [1,2]"},
		{nil, object{"x": 1}, `k not set {"x":1}`},
		{json.RawMessage("{"), 1, "k not set 1"},
		{math.NaN(), 1, "k not set 1"},
		{strings.Repeat("x", 99), "", `k "` + strings.Repeat("x", 79) + `… ""`},
	} {
		got := ""
		if d := FirstJSONDifference("k", c.a, c.b); d != nil {
			got = d.Key + " " + BriefJSON(d.A) + " " + BriefJSON(d.B)
		}
		if got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}
