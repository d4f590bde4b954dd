package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/batch"
	"parley/internal/batch/office"
	"parley/internal/provider"
	"parley/llm"
)

// Lane is a provider and the model that speaks to it: a dialect, or the sim.
type Lane struct {
	Provider provider.Provider
	Model    llm.Model
	// Desk is the provider's batch API. Default: none, and waves go live.
	Desk batch.Desk
}

// lanes sends every call down the lane of its provider.
type lanes struct {
	open     func(name string) (Lane, error)
	build    func(Lane) *lane
	deadline time.Duration // of a call in a wave, once it goes live

	mu       sync.RWMutex
	byName   map[string]*lane
	draining bool
}

// lane is one provider's own part of the way: warm(limit(meter(dialect))), with a
// limiter for all of its models and one more for each pattern with limits of its own.
type lane struct {
	provider provider.Provider
	groups   []group // the last has no pattern
	park     *park   // nil where there is no batch API
}

type group struct {
	pattern string
	limit   *limit
	model   llm.Model
}

// Ask asks the provider that req.Model names.
func (l *lanes) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	name, model := llm.SplitModel(req.Model)
	lane, err := l.lane(name)
	if err != nil {
		return nil, err
	}
	live := lane.group(model).model
	s := seatOf(ctx)
	switch {
	case s == nil:
		return live.Ask(ctx, req)
	case lane.park == nil:
		return s.live(ctx, req, live, l.deadline)
	}
	return lane.park.ask(ctx, s, req, func() (*llm.Response, error) { return s.live(ctx, req, live, l.deadline) })
}

// lane returns the lane of a provider, opening it if need be.
func (l *lanes) lane(name string) (*lane, error) {
	l.mu.RLock()
	found := l.byName[name]
	l.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.byName[name]; found != nil {
		return found, nil
	}
	if l.open == nil || name == "" {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: l.unknown(name)}
	}
	in, err := l.open(name)
	if err != nil {
		if e, ok := errors.AsType[*llm.Error](err); ok {
			return nil, e
		}
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}
	}
	opened := l.build(in)
	l.byName[name] = opened
	if l.draining {
		opened.drain()
	}
	return opened, nil
}

func (l *lanes) unknown(name string) string {
	names := slices.Sorted(maps.Keys(l.byName))
	if name == "" {
		return "a model is written provider/model; providers here: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("no provider %q; providers here: %s", name, strings.Join(names, ", "))
}

func (l *lane) group(model string) *group {
	for i := range l.groups {
		g := &l.groups[i]
		if g.pattern == "" {
			return g
		}
		if ok, _ := path.Match(g.pattern, model); ok {
			return g
		}
	}
	return nil // not reached: the last has no pattern
}

func newLanes(c Config, prices *tariff, s *Stats, post *office.Office) *lanes {
	l := &lanes{open: c.Open, byName: map[string]*lane{}, deadline: c.Retry.withDefaults().Deadline, build: func(in Lane) *lane {
		m := &meter{next: in.Model, prices: prices, stats: s, timeout: c.AttemptTimeout}
		guess := newEstimator()
		ln := newLane(in.Provider, m, guess, s)
		if limits, ok := in.Provider.BatchLimits(); ok && in.Desk != nil {
			ln.park = &park{counter: post.Counter(in.Provider.Name, in.Desk, limits), guess: guess, prices: prices, stats: s}
		}
		return ln
	}}
	for _, in := range c.Lanes {
		l.byName[in.Provider.Name] = l.build(in)
	}
	return l
}

func newLane(p provider.Provider, next llm.Model, guess *estimator, s *Stats) *lane {
	add := func(groups []group, pattern string, limits provider.Limits) []group {
		lim := newLimit(next, limits, counting(p), guess, s)
		return append(groups, group{pattern: pattern, limit: lim, model: newWarm(lim, p.Warm, s)})
	}
	// The longest pattern says most, so it is tried first.
	patterns := slices.SortedFunc(maps.Keys(p.ModelLimits), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	ln := &lane{provider: p}
	for _, pattern := range patterns {
		ln.groups = add(ln.groups, pattern, p.ModelLimits[pattern])
	}
	ln.groups = add(ln.groups, "", p.Limits)
	return ln
}

func counting(p provider.Provider) provider.Counting {
	switch {
	case p.Counting != "":
		return p.Counting
	case p.Dialect == "anthropic":
		return provider.CountUsed
	default:
		return provider.CountMax
	}
}

func (l *lanes) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	for _, lane := range l.byName {
		lane.drain()
	}
}

func (l *lane) drain() {
	for i := range l.groups {
		l.groups[i].limit.drain()
	}
}

// native says whether a model has structured output of its own.
func (l *lanes) native(name string) bool {
	prov, model := llm.SplitModel(name)
	lane, err := l.lane(prov)
	return err != nil || !lane.provider.Capability(model).NoSchema
}
