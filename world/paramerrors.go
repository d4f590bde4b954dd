package world

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrUnread is wrapped by errors about params whose files were not read.
var ErrUnread = errors.New("was not read")

// ParamErrors collects errors in the params of a kind, so that all of them are reported at once, each at
// its key. Set Kind to the kind's name before use.
type ParamErrors struct {
	Kind string
	errs []error
}

// Addf adds an error in a param, which is named as in a plan file: pool.timeout, servers[0].
func (c *ParamErrors) Addf(param, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: params.%s: %w", c.Kind, param, fmt.Errorf(format, args...)))
}

// Add adds an error that names its param itself. It ignores nil.
func (c *ParamErrors) Add(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

// IntRange reports n if it is not between low and high. math.MaxInt32 means no upper bound.
func (c *ParamErrors) IntRange(param string, n, low, high int) {
	switch {
	case n >= low && n <= high:
	case high == math.MaxInt32:
		c.Addf(param, "%d: want %d or more", n, low)
	default:
		c.Addf(param, "%d: want %d to %d", n, low, high)
	}
}

// Between reports x if it is not between low and high, or is NaN.
func (c *ParamErrors) Between(param string, x, low, high float64) {
	if !(x >= low && x <= high) {
		c.Addf(param, "%v: want %v to %v", x, low, high)
	}
}

// OneOf reports a value that is not allowed.
func (c *ParamErrors) OneOf(param, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		c.Addf(param, "%.40q: want one of %s", value, strings.Join(allowed, ", "))
	}
}

// Each reports values that are not allowed or are repeated.
func (c *ParamErrors) Each(param string, values, allowed []string) {
	for i, v := range values {
		switch {
		case !slices.Contains(allowed, v):
			c.OneOf(fmt.Sprintf("%s[%d]", param, i), v, allowed)
		case slices.Contains(values[:i], v):
			c.Addf(fmt.Sprintf("%s[%d]", param, i), "%.40q is listed twice", v)
		}
	}
}

// Braces reports placeholders of a text, such as {question}, that are in double braces.
func (c *ParamErrors) Braces(param, text string, marks ...string) {
	for _, mark := range marks {
		if twice := "{" + mark + "}"; strings.Contains(text, twice) {
			c.Addf(param, "%s is in double braces: write %s", twice, mark)
		}
	}
}

// Err returns all errors, or nil.
func (c *ParamErrors) Err() error { return errors.Join(c.errs...) }
