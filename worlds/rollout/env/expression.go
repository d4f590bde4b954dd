package env

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

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
