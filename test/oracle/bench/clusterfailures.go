package main

import (
	"fmt"
	"time"
)

// progress is how many calls a provider had answered, and when.
type progress struct {
	at []time.Time
	ok []int
}

// watchProgress notes the provider's count until end is called.
func watchProgress(s *server) (end func() progress) {
	stop, got := make(chan struct{}), make(chan progress)
	go func() {
		var p progress
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				got <- p
				return
			case <-tick.C:
				if st, err := s.stats(); err == nil {
					p.at, p.ok = append(p.at, time.Now()), append(p.ok, st.OK)
				}
			}
		}
	}()
	return func() progress { close(stop); return <-got }
}

// longest returns the longest time without an answer.
func (p progress) longest() (longest time.Duration) {
	last := 0
	for i := range p.at {
		if p.ok[i] > p.ok[last] {
			longest, last = max(longest, p.at[i].Sub(p.at[last])), i
		}
	}
	if n := len(p.at); n > 0 {
		longest = max(longest, p.at[n-1].Sub(p.at[last]))
	}
	return longest
}

// window is long enough that chance alone does not take a fifth of its answers.
const window = 2 * time.Second

// back returns from when on every window had four fifths of the answers of before, and whether that was so at the end.
func (p progress) back(before float64) (after time.Duration, ok bool) {
	end := 0
	for i := range p.at {
		for end < len(p.at) && p.at[end].Sub(p.at[i]) < window {
			end++
		}
		if end == len(p.at) {
			return after, i > 0 && p.at[i].Sub(p.at[0]) > after
		}
		if float64(p.ok[end]-p.ok[i])/p.at[end].Sub(p.at[i]).Seconds() < 0.8*before {
			after = p.at[i].Sub(p.at[0]) + window
		}
	}
	return after, false
}

const (
	failBefore = 4 * time.Second  // how long answers are counted before something is killed
	failAfter  = 12 * time.Second // and after it
)

// failure kills a process, starts it again if again is true, and says how that was.
func failure(s *server, m *member, again bool) (string, error) {
	st, err := s.stats()
	if err != nil {
		return "", err
	}
	from := time.Now()
	time.Sleep(failBefore)
	now, err := s.stats()
	if err != nil {
		return "", err
	}
	rate := float64(now.OK-st.OK) / time.Since(from).Seconds()
	end := watchProgress(s)
	m.kill()
	if again {
		err = m.start()
	}
	time.Sleep(failAfter)
	p := end()
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%.2f s without an answer; ", p.longest().Seconds())
	if after, ok := p.back(rate); ok {
		return text + fmt.Sprintf("%.1f s until 0.8 of %s calls/s again", after.Seconds(), figure(rate)), nil
	}
	return text + fmt.Sprintf("not 0.8 of %s calls/s in %.0f s", figure(rate), failAfter.Seconds()), nil
}

// clusterFailures measures how long nothing is answered after a process was killed, in a hub of one node and of three.
func clusterFailures(b *bench) ([]clusterRow, error) {
	var rows []clusterRow
	for _, nodes := range []int{1, 3} {
		s, err := b.sim("--latency", "100ms..300ms")
		if err != nil {
			return nil, err
		}
		defer s.stop()
		c, err := b.cluster(nodes, 4)
		if err != nil {
			return nil, err
		}
		defer c.stop()
		if err := c.play(secretsPlan(s.url, 20_000, 4), "--set", "limits.concurrency=40"); err != nil {
			return nil, err
		}
		if err := c.await(s, func(st stats) bool { return st.OK > 100 }); err != nil {
			return nil, err
		}
		type fault struct {
			what, wanted string
			kill         *member
			again        bool
		}
		faults := []fault{
			{"a worker of four is killed", "others go on", c.workers[0], false},
			{"the coordinator is killed and started again", "resumes by itself", c.run, true},
			{"the hub, of one node, is killed and started again", "resumes by itself", c.hub[0], true},
		}
		if nodes > 1 {
			faults = []fault{{"hub of three nodes: the coordinator is killed and started again", "workers go on", c.run, true}}
			for i, name := range []string{"first", "second", "third"} {
				faults = append(faults, fault{"hub of three nodes: the " + name + " node is killed and started again", "a pause of seconds", c.hub[i], true})
			}
		}
		for _, f := range faults {
			got, err := failure(s, f.kill, f.again)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.what, err)
			}
			if err := c.run.ended(); err != nil {
				return nil, fmt.Errorf("%s: %w", f.what, err)
			}
			rows = append(rows, clusterRow{f.what, f.wanted, got})
		}
	}
	return rows, nil
}
