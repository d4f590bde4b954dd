// Part expression says what is wrong with regular expressions of the earlier Scenario Lab, which were Python's.
//
// It does not convert them.

package earlier

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// around matches what looks ahead or behind.
var around = regexp.MustCompile(`\(\?<?[=!]`)

// expressionFault says why an expression cannot be used, or returns "". A broken one never could. Any other may be right in Python.
func expressionFault(text string) (why string, broken bool) {
	_, err := regexp.Compile(text)
	var e *syntax.Error
	if !errors.As(err, &e) {
		return "", false
	}
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		if around.MatchString(text) {
			return "looking ahead or behind is not possible", false
		}
		return fmt.Sprintf("%s is not possible", e.Expr), false
	}
	return fmt.Sprintf("%q is not a regular expression: %s", text, e.Code), true
}

// words matches alternatives without signs of a regular expression.
var words = regexp.MustCompile(`^(?:\(\?:)?[\pL\d '_-]+\)?(?:\|(?:\(\?:)?[\pL\d '_-]+\)?)*$`)

// expressionWords returns the words that an expression finds, if it has only these: a|b. Otherwise it returns nil.
func expressionWords(text string) []string {
	if !words.MatchString(text) {
		return nil
	}
	return strings.Split(strings.NewReplacer("(?:", "", ")", "").Replace(text), "|")
}
