package engine

import "fmt"

// session is the name of an attempt at an episode among those of all runs: what its requests
// have in common for servers that remember who asked. It is empty where nobody cares.
func (r *run) session(episode, attempt int) string {
	if r.Released == nil {
		return ""
	}
	return fmt.Sprintf("%s-%d-%d", r.Begun.Run, episode, attempt)
}

// release says that no more is asked in an attempt at an episode.
func (r *run) release(episode, attempt int, whole bool) {
	if r.Released != nil {
		r.Released(r.session(episode, attempt), whole)
	}
}

// abandon releases what is live when a sitting ends and is begun anew in the next. All other
// episodes go on then as the sessions they are.
func (r *run) abandon() {
	if !r.Kind.External() {
		return
	}
	for ep := range r.sched.live {
		r.release(ep.number, ep.attempt, false)
	}
}
