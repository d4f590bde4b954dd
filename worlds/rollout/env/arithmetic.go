package env

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"parley/worlds/rollout/rules"
)

// arithmeticParams are its params.
type arithmeticParams struct {
	Problems int `json:"problems"` // one after the other
	Terms    int `json:"terms"`    // numbers in each
	Largest  int `json:"largest"`
	// Dataset is one question, instead of problems that are drawn.
	Dataset *question `json:"dataset"`
}

// question is a row of a dataset of questions with one right answer.
type question struct {
	Problem  string `json:"problem"`
	Question string `json:"question"` // the same under another name
	Answer   string `json:"answer"`
}

// UnmarshalJSON reads a row and ignores other keys. An answer may be a number.
func (q *question) UnmarshalJSON(b []byte) error {
	var row struct {
		Problem, Question string
		Answer            any
	}
	if err := json.Unmarshal(b, &row); err != nil {
		return err
	}
	*q = question{Problem: row.Problem, Question: row.Question, Answer: fmt.Sprint(row.Answer)}
	if row.Problem == "" {
		q.Problem = row.Question
	}
	if q.Problem == "" || row.Answer == nil {
		return errors.New("dataset: want a problem (or question) and an answer")
	}
	if text, ok := row.Answer.(string); ok {
		if all := boxed.FindAllStringSubmatch(text, -1); len(all) > 0 {
			q.Answer = all[len(all)-1][1]
		}
	} else if x, ok := row.Answer.(float64); ok {
		q.Answer = strconv.FormatFloat(x, 'f', -1, 64)
	}
	return nil
}

// arithmetic asks problems one after the other, and pays 1 for each right answer.
type arithmetic struct {
	arithmeticParams
	conversation
	rand  *rand.Rand
	right string // the answer to the present problem
	asked int
}

func newArithmetic(params json.RawMessage) (Env, error) {
	p := arithmeticParams{Problems: 1, Terms: 2, Largest: 20}
	err := readParams("arithmetic", params, &p, bound{"problems", &p.Problems, 1, 1000}, bound{"terms", &p.Terms, 2, 10}, bound{"largest", &p.Largest, 1, 1_000_000})
	if p.Dataset != nil {
		p.Problems = 1
	}
	return &arithmetic{arithmeticParams: p}, err
}

func (a *arithmetic) Reset(seed int64) {
	a.rand, a.asked = newRand(seed), 0
	a.conversation = newConversation("Solve the problem. Think as long as you like, and put the final answer last, in \\boxed{}.", a.problem())
}

// problem draws the next problem.
func (a *arithmetic) problem() string {
	a.asked++
	if a.Dataset != nil {
		a.right = normalize(a.Dataset.Answer)
		return a.Dataset.Problem
	}
	var text strings.Builder
	sum, product := 0, 1
	for i := range a.Terms {
		n := 1 + a.rand.IntN(a.Largest)
		op := ""
		if i > 0 {
			op = []string{" + ", " - ", " * "}[a.rand.IntN(3)]
		}
		switch op { // the last summand is kept apart until its product is complete
		case " * ":
			product *= n
		case " - ":
			sum, product = sum+product, -n
		case " + ":
			sum, product = sum+product, n
		default:
			product = n
		}
		text.WriteString(op + strconv.Itoa(n))
	}
	a.right = strconv.Itoa(sum + product)
	return "What is " + text.String() + "?"
}

func (a *arithmetic) Step(action rules.Action) rules.Result {
	if a.done {
		return result(0, true, false)
	}
	text, reward, verdict := onlyText(action), 0.0, "That is wrong: it is "+a.right+"."
	if answer := finalAnswer(text); answer != "" && answer == a.right {
		reward, verdict = 1, "That is right."
	}
	if a.done = a.asked == a.Problems; a.done {
		return result(reward, true, false)
	}
	a.answered(text, verdict+" "+a.problem())
	return result(reward, false, false)
}
