package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// When things happen while limits are shared, from the first call on.
const (
	sharesWait = 6 * time.Second  // before that, processes start
	sharesFrom = 10 * time.Second // what the provider had saved up is used by then
	sharesKill = 15 * time.Second // a worker is killed
	sharesJoin = 25 * time.Second // another starts
	sharesEnd  = 50 * time.Second
)

// sharedLimit is a limit that four workers share.
type sharedLimit struct {
	name, dialect string
	server        string // flags of the provider
	plan          string // limits in the plan
	perMinute     float64
	of            func(stats) int // what was used
}

func sharedLimits() []sharedLimit {
	const rpm, itpm, otpm = 6000, 1_600_000, 90_000
	requests := func(s stats) int { return s.Requests - s.RateLimited }
	input := func(s stats) int { return s.Tokens.Input }
	output := func(s stats) int { return s.Tokens.Output }
	all := []sharedLimit{
		{"requests", "openai", fmt.Sprint("--burst 2s --rpm ", rpm), fmt.Sprint("rpm: ", rpm), rpm, requests},
		{"input tokens", "anthropic", fmt.Sprint("--burst 2s --itpm ", itpm), fmt.Sprint("itpm: ", itpm), itpm, input},
		{"output tokens", "anthropic", fmt.Sprint("--burst 4s --otpm ", otpm), fmt.Sprint("otpm: ", otpm), otpm, output},
	}
	for _, l := range all[:3:3] {
		l.server += " --no-limit-headers"
		all = append(all, l)
	}
	for i := range 3 {
		all[i].plan = "" // it is learned
		all[i].name += " a minute, learned from headers"
		all[i+3].name += " a minute, in the plan; no headers"
	}
	return all
}

// clusterLimits measures how much of a provider's limits workers use together, and how many calls it refuses. All limits are
// measured at the same time, each with processes of its own.
func clusterLimits(b *bench) ([]clusterRow, error) {
	all := sharedLimits()
	rows, errs := make([]clusterRow, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, l := range all {
		c, err := b.cluster(1, 4)
		if err != nil {
			return nil, err
		}
		defer c.stop()
		wg.Go(func() {
			time.Sleep(sharesWait)
			rows[i], errs[i] = c.share(l)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return rows, nil
}

// share measures one limit while a worker is killed and another joins.
func (c *cluster) share(l sharedLimit) (row clusterRow, err error) {
	s, err := c.b.sim(append(strings.Fields(l.server), "--latency", "lognormal:1s,0.3")...)
	if err != nil {
		return row, err
	}
	defer s.stop()
	plan := strings.Replace(secretsPlan(s.url, 20_000, 4), "dialect: openai", "dialect: "+l.dialect, 1)
	plan = strings.NewReplacer("small}", "small, max_tokens: 64}", "large}", "large, max_tokens: 64}").Replace(plan)
	if l.plan != "" {
		plan = strings.Replace(plan, "base_url:", "limits: {"+l.plan+"}, base_url:", 1)
	}
	if err := c.play(plan); err != nil {
		return row, err
	}
	if err := c.await(s, func(st stats) bool { return st.Requests > 0 }); err != nil {
		return row, err
	}
	began := time.Now()
	until := func(d time.Duration) time.Duration { time.Sleep(time.Until(began.Add(d))); return time.Since(began) }
	from := until(sharesFrom)
	before, err := s.stats()
	if err != nil {
		return row, err
	}
	until(sharesKill)
	c.workers[0].kill()
	until(sharesJoin)
	if err := c.join(); err != nil {
		return row, err
	}
	end := until(sharesEnd)
	after, err := s.stats()
	if err != nil {
		return row, err
	}
	whole := float64(l.of(after)) / l.perMinute / end.Minutes()
	later := float64(l.of(after)-l.of(before)) / l.perMinute / (end - from).Minutes()
	return clusterRow{
		"limit of " + l.name, "at least 0.95, at most 0.5% refused",
		fmt.Sprintf("%.3f from the first call on, %.3f after %.0f s; %.2f%% of %s refused", whole, later, sharesFrom.Seconds(), 100*float64(after.RateLimited)/float64(after.Requests), figure(float64(after.Requests))),
	}, c.run.ended()
}
