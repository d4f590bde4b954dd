package score

import (
	"strings"
	"testing"

	"parley/world"
)

// TestBounds: a rule that can only be true or false is a share.
func TestBounds(t *testing.T) {
	t.Parallel()
	low, high := -1.0, 5.0
	for name, c := range map[string]struct {
		Rule
		want world.Bounds
	}{
		"match":            {Rule{Match: "a"}, world.Share()},
		"count":            {Rule{Count: "a"}, world.AtLeast0()},
		"field":            {Rule{Field: "a"}, world.Anything()},
		"a comparison":     {Rule{Expr: `scores["points"] > 1`}, world.Share()},
		"any of":           {Rule{Expr: `any(answers, # contains "no")`}, world.Share()},
		"not":              {Rule{Expr: `not (data.winner == seat)`}, world.Share()},
		"a number":         {Rule{Expr: `len(calls)`}, world.Anything()},
		"numbers 0 and 1":  {Rule{Expr: `len(calls) > 2 ? 1 : 0`}, world.Anything()},
		"what data say":    {Rule{Expr: `data.won`}, world.Anything()},
		"low and high":     {Rule{Expr: `data.won`, Low: &low, High: &high}, world.Bounds{Low: -1, High: 5}},
		"a wrong one":      {Rule{Expr: `(`}, world.Anything()},
		"an unknown value": {Rule{Expr: `nil`}, world.Anything()},
	} {
		if got := c.Bounds(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestInfinite: a value that is not finite is no score, and the reason says so.
func TestInfinite(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{"1/0": "the value is +Inf, as after a division by 0", "-1/0": "-Inf", "0/0": "NaN", `"a"`: "the value is string: want a number"} {
		c, err := Rule{Expr: expr}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := c.Eval(&Episode{}, ""); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", expr, ok, err, want)
		}
	}
}

// TestOutOfRange: a value outside of the range of a rule is no score, and the reason says so.
func TestOutOfRange(t *testing.T) {
	t.Parallel()
	low, high := 0.0, 5.0
	for expr, want := range map[string]string{"5": "", "7": "the value is 7, and the rule's range is 0 to 5", "-1e300": "the value is -1e+300"} {
		c, err := Rule{Expr: expr, Low: &low, High: &high}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := c.Eval(&Episode{}, ""); ok != (want == "") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v, want %s", expr, ok, err, want)
		}
	}
}
