package journal

// Progress is how far an episode has come. The zero value is an episode without entries.
type Progress struct {
	// Attempt is the last that began.
	Attempt int
	// Open is how many of its calls have no reply.
	Open int
	// Entries is how many turns and replies it has.
	Entries int
	// Ended means that nothing is played any more.
	Ended bool
}

// Turned applies a turn of the episode.
func (p *Progress) Turned(t *Turned) {
	if p.playing(t.Attempt) {
		p.Entries++
		p.Open += t.Calls
	}
}

// Replied applies a reply. A reply after the end of the episode, or to an earlier attempt, changes
// nothing.
func (p *Progress) Replied(r *Replied) {
	if p.playing(r.Attempt) {
		p.Entries++
		p.Open = max(0, p.Open-1)
	}
}

// End applies the episode's end: open calls are not made again.
func (p *Progress) End(e *Ended) {
	*p = Progress{Attempt: e.Attempt, Ended: true}
}

// playing reports whether attempt is the current one. A later attempt than the known one begins
// with this entry, and the calls of the earlier one are given up.
func (p *Progress) playing(attempt int) bool {
	if attempt > p.Attempt {
		*p = Progress{Attempt: attempt}
	}
	return attempt == p.Attempt && !p.Ended
}
