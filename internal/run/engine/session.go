package engine

import "fmt"

// session returns the name of an attempt at an episode, unique among all runs. Its requests share
// it, for servers that keep state between requests. It is empty if Released is not set.
func (r *run) session(episode, attempt int) string {
	if r.Released == nil {
		return ""
	}
	return fmt.Sprintf("%s-%d-%d", r.Begun.Run, episode, attempt)
}

// release reports that an attempt at an episode makes no more requests.
func (r *run) release(episode, attempt int, whole bool) {
	if r.Released != nil {
		r.Released(r.session(episode, attempt), whole)
	}
}

// abandon releases the live episodes that the next process must begin again. All others continue
// with their sessions.
func (r *run) abandon() {
	if !r.Kind.Restarts() {
		return
	}
	for ep := range r.sched.live {
		r.release(ep.number, ep.attempt, false)
	}
}
