package price

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/llm"
)

// object is a JSON object read key by key, so that errors can name the key.
type object map[string]json.RawMessage

func decode(b []byte) (object, error) {
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	return o, nil
}

// only refuses unknown keys, since a misspelled price is a wrong bill.
func (o object) only(known ...string) error {
	for _, k := range o.keys() {
		if !slices.Contains(known, k) {
			return fmt.Errorf("%s: unknown key; want one of %s", k, strings.Join(known, ", "))
		}
	}
	return nil
}

// Scales convert the numbers of a file to Money per million tokens.
const (
	perMillion = float64(llm.Dollar)
	perToken   = float64(llm.Dollar) * million
)

// maxRate is higher than any price, and low enough for exact arithmetic.
const maxRate = million * llm.Dollar

// rates reads the rates under the given keys, in the order of rateKeys. Input and output are required; those of caches
// default to the more expensive one before them, and that of audio is 0 if it is not known.
func (o object) rates(keys []string, scale float64) (Rates, error) {
	var r Rates
	to := []*llm.Money{&r.Input, &r.Cached, &r.CacheWrite, &r.CacheWriteLong, &r.Output, &r.Audio}
	for i, key := range keys {
		m, found, err := o.money(key, scale)
		if err != nil {
			return r, err
		}
		switch {
		case found:
			*to[i] = m
		case to[i] == &r.Input || to[i] == &r.Output:
			return r, fmt.Errorf("%s: missing", key)
		case to[i] == &r.CacheWriteLong:
			*to[i] = max(r.Input, r.CacheWrite)
		case to[i] != &r.Audio:
			*to[i] = r.Input
		}
	}
	return r, nil
}

func (o object) money(key string, scale float64) (llm.Money, bool, error) {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return 0, false, nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		return 0, false, fmt.Errorf("%s: want a price in dollars, not %s", key, text.Excerpt(raw, 40))
	}
	m := math.Round(f * scale)
	if m < 0 || m > float64(maxRate) {
		return 0, false, fmt.Errorf("%s: %s is not a price", key, text.Excerpt(raw, 40))
	}
	return llm.Money(m), true, nil
}

// count reads a whole number of tokens; 0 if it is missing.
func (o object) count(key string) (int, error) {
	raw, ok := o[key]
	if !ok {
		return 0, nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || f < 1 || f > 1e12 {
		return 0, fmt.Errorf("%s: want a number of tokens, not %s", key, text.Excerpt(raw, 40))
	}
	return int(f), nil
}
