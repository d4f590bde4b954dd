package score

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"parley/world"
)

// Rule is a score that needs no model: the same episode always has the same score. Exactly one of Match, Count, Field and Expr is set.
type Rule struct {
	Match string   `json:"match,omitempty" doc:"A regular expression. The score is 1 if an answer matches it, and otherwise 0."`
	Count string   `json:"count,omitempty" doc:"A regular expression. The score is how often the answers match it."`
	Field string   `json:"field,omitempty" doc:"A field of answers that are JSON: a number, or true or false, such as offer.price or bids.0."`
	Expr  string   `json:"expr,omitempty" doc:"An expression in the language Expr. The score is its value: a number, or true or false. nil means no score."`
	Take  string   `json:"take,omitempty" doc:"With field: which of the values. Default: last." oneof:",first,last,mean,sum,min,max"`
	Label string   `json:"label,omitempty" doc:"Only answers to calls with this label. Default: all."`
	Per   string   `json:"per,omitempty" doc:"What has the score: each seat, or the whole episode. Default: seat." oneof:",seat,episode"`
	Low   *float64 `json:"low,omitempty" doc:"With field or expr: the lowest possible score. Intervals end there."`
	High  *float64 `json:"high,omitempty" doc:"With field or expr: the highest possible score."`
}

// compiledRule is a rule that can be applied.
type compiledRule struct {
	Rule
	pattern *regexp.Regexp
	program *vm.Program
}

// PerEpisode reports whether the whole episode has the score, and not each seat.
func (r Rule) PerEpisode() bool { return r.Per == "episode" }

// Bounds returns the possible values, as far as the rule says them.
func (r Rule) Bounds() world.Bounds {
	switch {
	case r.Match != "":
		return world.Share()
	case r.Count != "":
		return world.AtLeast0()
	case r.Low != nil && r.High != nil:
		return world.Bounds{Low: *r.Low, High: *r.High}
	case r.isTrueOrFalse():
		return world.Share()
	default:
		return world.Anything()
	}
}

// isTrueOrFalse reports whether the value of the expression can be nothing else.
func (r Rule) isTrueOrFalse() bool {
	if r.Expr == "" {
		return false
	}
	c, err := r.Compile()
	if err != nil {
		return false
	}
	t := c.program.Node().Type()
	return t != nil && t.Kind() == reflect.Bool
}

// Compile checks a rule.
func (r Rule) Compile() (c *compiledRule, err error) {
	c = &compiledRule{Rule: r}
	set := 0
	for _, s := range []string{r.Match, r.Count, r.Field, r.Expr} {
		if s != "" {
			set++
		}
	}
	switch {
	case set != 1:
		return nil, errors.New("want one of match, count, field and expr")
	case r.Take != "" && r.Field == "":
		return nil, errors.New("take is only for field")
	case (r.Low != nil || r.High != nil) && r.Field == "" && r.Expr == "":
		return nil, errors.New("low and high are only for field and expr")
	case (r.Low == nil) != (r.High == nil) || r.Low != nil && !(*r.Low < *r.High):
		return nil, errors.New("want both low and high, and low below high")
	}
	if p := r.Match + r.Count; p != "" {
		if c.pattern, err = regexp.Compile(p); err != nil {
			return nil, fmt.Errorf("%w: see https://golang.org/s/re2syntax", err)
		}
	}
	if r.Expr != "" {
		c.program, err = expr.Compile(r.Expr, options()...)
	}
	return c, err
}

// view is what expressions can use.
type view struct {
	Episode int                `expr:"episode"`
	Kind    string             `expr:"kind"`
	Cell    string             `expr:"cell"`
	Seat    string             `expr:"seat"`
	Seats   map[string]string  `expr:"seats"`
	Agent   string             `expr:"agent"`
	Model   string             `expr:"model"`
	Params  any                `expr:"params"`
	Data    any                `expr:"data"`
	Scores  map[string]float64 `expr:"scores"`
	Answers []string           `expr:"answers"`
	Calls   []viewCall         `expr:"calls"`
	Notes   []viewNote         `expr:"notes"`
}

type viewCall struct {
	Turn  string `expr:"turn"`
	Seat  string `expr:"seat"`
	Label string `expr:"label"`
	Text  string `expr:"text"`
	JSON  any    `expr:"json"`
	OK    bool   `expr:"ok"`
}

type viewNote struct {
	Turn string `expr:"turn"`
	Kind string `expr:"kind"`
	Seat string `expr:"seat"`
	Data any    `expr:"data"`
}

// options allow only what has the same value every time: no clock, and no order of a map.
func options() []expr.Option {
	all := []expr.Option{expr.Env(view{})}
	for _, f := range []string{"now", "date", "timezone", "keys", "values", "toPairs"} {
		all = append(all, expr.DisableBuiltin(f))
	}
	return all
}

// Eval applies a rule to a seat of an episode, or to the whole episode if seat is empty. ok is false if there is no score.
func (c *compiledRule) Eval(of *Episode, seat string) (value float64, ok bool, err error) {
	value, ok, err = c.eval(of, seat)
	if ok && c.Low != nil && c.High != nil && !c.Bounds().Holds(value) { // no other rule can leave its range
		return 0, false, fmt.Errorf("the value is %g, and the rule's range is %s: correct the rule, low or high", value, c.Bounds())
	}
	return value, ok, err
}

func (c *compiledRule) eval(of *Episode, seat string) (value float64, ok bool, err error) {
	switch {
	case c.program != nil:
		return c.express(of, seat)
	case c.Field != "":
		value, ok = c.take(of, seat)
		return value, ok, nil
	}
	found, asked := 0, false
	for _, call := range of.Calls {
		if !c.covers(call, seat) {
			continue
		}
		asked = true
		if found += len(c.pattern.FindAllStringIndex(call.Reply.Text, -1)); found > 0 && c.Match != "" {
			return 1, true, nil
		}
	}
	return float64(found), asked, nil
}

// covers reports whether a rule is about an answer.
func (c *compiledRule) covers(call Call, seat string) bool {
	return call.Act == nil && call.Reply.OK() && (seat == "" || call.Seat == seat) && (c.Label == "" || call.Label == c.Label)
}

// take returns the value of the field.
func (c *compiledRule) take(of *Episode, seat string) (float64, bool) {
	var all []float64
	for _, call := range of.Calls {
		if !c.covers(call, seat) {
			continue
		}
		if v, ok := number(field(decode(call.Reply.JSON), c.Field)); ok && finite(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	sum, low, high := 0.0, all[0], all[0]
	for _, v := range all {
		sum, low, high = sum+v, min(low, v), max(high, v)
	}
	value := map[string]float64{"first": all[0], "mean": sum / float64(len(all)), "sum": sum, "min": low, "max": high}
	v, other := value[c.Take]
	if !other {
		v = all[len(all)-1]
	}
	return v, finite(v)
}

// field follows a path such as bids.0.price.
func field(v any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(of) {
				return nil
			}
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

// express evaluates the expression.
func (c *compiledRule) express(of *Episode, seat string) (float64, bool, error) {
	v := view{
		Episode: of.Episode, Kind: of.Kind, Cell: of.Cell, Seat: seat, Seats: of.Lineup, Agent: of.Lineup[seat], Model: of.Models[of.Lineup[seat]],
		Params: decode(of.Params), Scores: map[string]float64{},
	}
	if raw, ok := of.Outcome.Data.(json.RawMessage); ok {
		v.Data = decode(raw)
	}
	for _, s := range of.Outcome.Scores {
		if s.Seat == "" || s.Seat == seat {
			v.Scores[s.Name] = s.Value
		}
	}
	for _, call := range of.Calls {
		if call.Act == nil {
			v.Calls = append(v.Calls, viewCall{call.Turn, call.Seat, call.Label, call.Reply.Text, decode(call.Reply.JSON), call.Reply.OK()})
		}
		if c.covers(call, seat) {
			v.Answers = append(v.Answers, call.Reply.Text)
		}
	}
	for _, n := range of.Notes {
		v.Notes = append(v.Notes, viewNote{n.Turn, n.Kind, n.Seat, decode(n.Data)})
	}
	out, err := expr.Run(c.program, v)
	if err != nil {
		return 0, false, err
	}
	if out == nil {
		return 0, false, nil
	}
	value, ok := number(out)
	switch {
	case !ok:
		return 0, false, fmt.Errorf("the value is %T: want a number, true, false or nil", out)
	case !finite(value):
		return 0, false, fmt.Errorf("the value is %v, as after a division by 0: want a finite number, or nil for no score", value)
	}
	return value, true, nil
}

func decode(raw json.RawMessage) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// number returns a value as a number.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case bool:
		if n {
			return 1, true
		}
		return 0, true
	case int:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
