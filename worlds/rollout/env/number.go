package env

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"parley/worlds/rollout/rules"
)

// numberParams are its params.
type numberParams struct {
	Numbers int `json:"numbers"` // given
	Largest int `json:"largest"`
	Tries   int `json:"tries"`
}

// number gives some numbers and a target. The first try that makes the target earns 1, a later one less.
type number struct {
	numberParams
	talk
	given  []int
	target int
	tried  int
	done   bool
}

func newNumber(params json.RawMessage) (Env, error) {
	p := numberParams{Numbers: 4, Largest: 25, Tries: 3}
	err := decode("number", params, &p)
	for _, c := range []struct {
		param            string
		value, low, high int
	}{{"numbers", p.Numbers, 2, 8}, {"largest", p.Largest, 2, 1000}, {"tries", p.Tries, 1, 100}} {
		if err == nil {
			err = within("number", c.param, c.value, c.low, c.high)
		}
	}
	return &number{numberParams: p}, err
}

func (n *number) Reset(seed int64) {
	n.tried, n.done = 0, false
	n.draw(chance(seed))
	n.talk = newTalk("Write an expression with + - * / and parentheses. Use each of the numbers you are given at most once, and no others. "+
		"Put the expression last, in <answer> and </answer>.",
		fmt.Sprintf("The numbers are %s. Make %d.", listed(n.given), n.target))
}

// draw draws numbers, and a target that can be made of them.
func (n *number) draw(r *rand.Rand) {
	n.given = nil
	for range n.Numbers {
		n.given = append(n.given, 1+r.IntN(n.Largest))
	}
	n.target = n.given[0]
	for _, x := range n.given[1:] {
		switch op := r.IntN(4); {
		case op == 0 && n.target*x <= 10_000:
			n.target *= x
		case op == 1 && n.target > x:
			n.target -= x
		case op == 2 && n.target%x == 0:
			n.target /= x
		default:
			n.target += x
		}
	}
	r.Shuffle(len(n.given), func(i, j int) { n.given[i], n.given[j] = n.given[j], n.given[i] })
}

func listed(numbers []int) string {
	var parts []string
	for _, x := range numbers {
		parts = append(parts, fmt.Sprint(x))
	}
	return strings.Join(parts, ", ")
}

func (n *number) Prompt() rules.Prompt {
	if n.done {
		return nil
	}
	return rules.Ask(n.talk...)
}

var answerTag = regexp.MustCompile(`(?s)<answer>(.*?)</answer>`)

func (n *number) Step(action rules.Action) rules.Result {
	if n.done {
		return result(0, true, false)
	}
	text := only(action)
	n.tried++
	why := n.judge(text)
	n.done = why == "" || n.tried == n.Tries
	if why == "" {
		return result(1-float64(n.tried-1)/float64(n.Tries), true, false)
	}
	if !n.done {
		n.answered(text, why+fmt.Sprintf(" Try again: make %d of %s.", n.target, listed(n.given)))
	}
	return result(0, n.done, false)
}

// judge returns what is wrong with an answer, or "".
func (n *number) judge(text string) string {
	all := answerTag.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "There is no <answer>."
	}
	value, used, err := evaluate(all[len(all)-1][1])
	if err != nil {
		return "That is no expression: " + err.Error() + "."
	}
	left := slices.Clone(n.given)
	for _, x := range used {
		i := slices.Index(left, x)
		if i < 0 {
			return fmt.Sprintf("You used %d, which you do not have, or not that often.", x)
		}
		left = slices.Delete(left, i, i+1)
	}
	if value.Cmp(big.NewRat(int64(n.target), 1)) != 0 {
		return "That makes " + value.RatString() + "."
	}
	return ""
}
