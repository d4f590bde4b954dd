package world

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrUnread is wrapped by what a kind says of params whose files were not read.
var ErrUnread = errors.New("was not read")

// Complaints gathers what is wrong with the params of a kind, so that all of it is reported at
// once, each at its key. The zero value with a kind's name is empty.
type Complaints struct {
	Kind string
	errs []error
}

// Say puts down what is wrong with a param, which is named as in a plan file: pool.timeout,
// servers[0].
func (c *Complaints) Say(param, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: params.%s: %w", c.Kind, param, fmt.Errorf(format, args...)))
}

// Add puts down an error that names its param itself. Nil is nothing.
func (c *Complaints) Add(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

// Whole wants a number from low to high. math.MaxInt32 is no bound.
func (c *Complaints) Whole(param string, n, low, high int) {
	switch {
	case n >= low && n <= high:
	case high == math.MaxInt32:
		c.Say(param, "%d: want %d or more", n, low)
	default:
		c.Say(param, "%d: want %d to %d", n, low, high)
	}
}

// Between wants a number from low to high. NaN is not.
func (c *Complaints) Between(param string, x, low, high float64) {
	if !(x >= low && x <= high) {
		c.Say(param, "%v: want %v to %v", x, low, high)
	}
}

// OneOf wants a value that is allowed.
func (c *Complaints) OneOf(param, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		c.Say(param, "%.40q: want one of %s", value, strings.Join(allowed, ", "))
	}
}

// Each wants values that are allowed, each once.
func (c *Complaints) Each(param string, values, allowed []string) {
	for i, v := range values {
		switch {
		case !slices.Contains(allowed, v):
			c.OneOf(fmt.Sprintf("%s[%d]", param, i), v, allowed)
		case slices.Contains(values[:i], v):
			c.Say(fmt.Sprintf("%s[%d]", param, i), "%.40q is listed twice", v)
		}
	}
}

// Braces wants the marks of a text, such as {question}, in single braces.
func (c *Complaints) Braces(param, text string, marks ...string) {
	for _, mark := range marks {
		if twice := "{" + mark + "}"; strings.Contains(text, twice) {
			c.Say(param, "%s is in double braces: write %s", twice, mark)
		}
	}
}

// Err is all of it, nil where nothing is wrong.
func (c *Complaints) Err() error { return errors.Join(c.errs...) }
