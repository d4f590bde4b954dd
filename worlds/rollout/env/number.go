package env

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
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
	conversation
	given  []int
	target int
	tried  int
}

func newNumber(params json.RawMessage) (Env, error) {
	p := numberParams{Numbers: 4, Largest: 25, Tries: 3}
	err := readParams("number", params, &p, bound{"numbers", &p.Numbers, 2, 8}, bound{"largest", &p.Largest, 2, 1000}, bound{"tries", &p.Tries, 1, 100})
	return &number{numberParams: p}, err
}

func (n *number) Reset(seed int64) {
	n.tried = 0
	n.draw(newRand(seed))
	n.conversation = newConversation("Write an expression with + - * / and parentheses. Use each of the numbers you are given at most once, and no others. "+
		"Put the expression last, in <answer> and </answer>.",
		fmt.Sprintf("The numbers are %s. Make %d.", joinNumbers(n.given), n.target))
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

func joinNumbers(numbers []int) string {
	var parts []string
	for _, x := range numbers {
		parts = append(parts, fmt.Sprint(x))
	}
	return strings.Join(parts, ", ")
}

var answerTag = regexp.MustCompile(`(?s)<answer>(.*?)</answer>`)

func (n *number) Step(action rules.Action) rules.Result {
	if n.done {
		return result(0, true, false)
	}
	text := onlyText(action)
	n.tried++
	why := n.judge(text)
	n.done = why == "" || n.tried == n.Tries
	if why == "" {
		return result(1-float64(n.tried-1)/float64(n.Tries), true, false)
	}
	if !n.done {
		n.answered(text, why+fmt.Sprintf(" Try again: make %d of %s.", n.target, joinNumbers(n.given)))
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

// maxExpression bounds the length of an expression, so also its depth and its value.
const maxExpression = 200

// evaluate returns the exact value of an expression of whole numbers with + - * / and parentheses, and the
// numbers in it.
func evaluate(text string) (*big.Rat, []int, error) {
	if len(text) > maxExpression {
		return nil, nil, fmt.Errorf("it is longer than %d characters", maxExpression)
	}
	e := &expression{rest: strings.TrimSpace(text)}
	v, err := e.sum()
	if err == nil && e.rest != "" {
		err = fmt.Errorf("%.10q is in the way", e.rest)
	}
	return v, e.used, err
}

// expression is the rest of an expression.
type expression struct {
	rest string
	used []int
}

// take removes one of the signs, if it comes next.
func (e *expression) take(signs string) byte {
	if e.rest == "" || !strings.ContainsRune(signs, rune(e.rest[0])) {
		return 0
	}
	sign := e.rest[0]
	e.rest = strings.TrimSpace(e.rest[1:])
	return sign
}

func (e *expression) sum() (*big.Rat, error) {
	v, err := e.product()
	for err == nil {
		sign := e.take("+-")
		if sign == 0 {
			break
		}
		var next *big.Rat
		if next, err = e.product(); err != nil {
			break
		}
		if sign == '-' {
			next.Neg(next)
		}
		v.Add(v, next)
	}
	return v, err
}

func (e *expression) product() (*big.Rat, error) {
	v, err := e.factor()
	for err == nil {
		sign := e.take("*/")
		if sign == 0 {
			break
		}
		var next *big.Rat
		if next, err = e.factor(); err != nil {
			break
		}
		if sign == '/' {
			if next.Sign() == 0 {
				return nil, errors.New("it divides by zero")
			}
			next.Inv(next)
		}
		v.Mul(v, next)
	}
	return v, err
}

func (e *expression) factor() (*big.Rat, error) {
	switch e.take("(-") {
	case '-':
		v, err := e.factor()
		if err == nil {
			v.Neg(v)
		}
		return v, err
	case '(':
		v, err := e.sum()
		if err == nil && e.take(")") == 0 {
			err = errors.New("a parenthesis is not closed")
		}
		return v, err
	}
	digits := len(e.rest) - len(strings.TrimLeft(e.rest, "0123456789"))
	n, err := strconv.Atoi(e.rest[:digits])
	if err != nil {
		return nil, fmt.Errorf("a number is missing before %.10q", e.rest)
	}
	e.rest = strings.TrimSpace(e.rest[digits:])
	e.used = append(e.used, n)
	return big.NewRat(int64(n), 1), nil
}
