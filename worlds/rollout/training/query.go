package training

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query is a reader's request.
type query struct {
	reading
	limit int
	wait  time.Duration
}

// queryError is a query that cannot be understood.
type queryError struct{ key, what string }

func (e *queryError) Error() string { return e.key + ": " + e.what }

// maxWait is how long an answer may wait.
const maxWait = 60 * time.Second

// queryKeys returns the keys of a query.
func queryKeys() []string {
	return []string{"cursor", "limit", "wait", "status", "trainable", "whole", "min_reward", "unequal", "weight_version", "max_lag"}
}

// query reads a reader's request.
func (s *Server) query(r *http.Request) (*query, error) {
	values := r.URL.Query()
	for key := range values {
		if !slices.Contains(queryKeys(), key) {
			return nil, &queryError{short(key), "is not known: use " + strings.Join(queryKeys(), ", ")}
		}
	}
	q := &query{limit: 64, reading: reading{source: s.source}}
	f, read := &q.filter, asked{get: values.Get}
	read.number("limit", &q.limit, 1, maxGroups)
	seconds := 0
	read.number("wait", &seconds, 0, int(maxWait/time.Second))
	q.wait = time.Duration(seconds) * time.Second
	read.yes("trainable", &f.Trainable)
	read.yes("whole", &f.Whole)
	read.yes("unequal", &f.Unequal)
	if reward := 0.0; values.Get("min_reward") != "" {
		read.decimal("min_reward", &reward)
		f.MinReward = &reward
	}
	if version := 0; values.Get("weight_version") != "" {
		read.number("weight_version", &version, 0, 1<<53)
		f.Version = &version
	}
	read.number("max_lag", &f.Lag, 0, 1<<53)
	read.statuses("status", &f.Statuses)
	if f.Version == nil && values.Get("max_lag") == "" {
		s.fresh(f)
	}
	if f.Version == nil && values.Get("max_lag") != "" {
		f.Version = s.version.Load()
	}
	if read.err == nil && f.Version == nil && values.Get("max_lag") != "" && f.Lag > 0 {
		read.fail("max_lag", "needs weight_version, or POST /v1/weights before")
	}
	if read.err != nil {
		return nil, read.err
	}
	var err error
	q.cursor, err = s.source.parse(r.Context(), values.Get("cursor"))
	return q, err
}

// fresh sets the run's own limit on the age of weights, once a trainer has said which it has.
func (s *Server) fresh(f *Filter) {
	if s.cfg.Staleness != nil {
		f.Version, f.Lag = s.version.Load(), *s.cfg.Staleness
	}
}

// asked reads values until one is wrong.
type asked struct {
	get func(key string) string
	err error
}

func (a *asked) fail(key, format string, args ...any) {
	if a.err == nil {
		a.err = &queryError{key, fmt.Sprintf(format, args...)}
	}
}

func (a *asked) number(key string, into *int, low, high int) {
	text := a.get(key)
	if text == "" {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		a.fail(key, "%.40q: want a number from %d to %d", text, low, high)
		return
	}
	*into = n
}

func (a *asked) decimal(key string, into *float64) {
	x, err := strconv.ParseFloat(a.get(key), 64)
	if err != nil || math.IsNaN(x) {
		a.fail(key, "%.40q: want a number", a.get(key))
		return
	}
	*into = x
}

func (a *asked) yes(key string, into *bool) {
	switch text := a.get(key); text {
	case "", "false", "0":
	case "true", "1":
		*into = true
	default:
		a.fail(key, "%.40q: want true or false", text)
	}
}

func (a *asked) statuses(key string, into *[]Status) {
	text := a.get(key)
	if text == "" {
		return
	}
	for name := range strings.SplitSeq(text, ",") {
		s, err := ParseStatus(name)
		if err != nil {
			a.fail(key, "%v", err)
			return
		}
		*into = append(*into, s)
	}
}
