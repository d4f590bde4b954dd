package journal

// Progress is how far an episode has come. The zero value is an episode of which nothing
// was written.
type Progress struct {
	// Attempt is the last that began.
	Attempt int
	// Open is how many calls of it were asked for and have no reply.
	Open int
	// Entries is how many turns and replies it has.
	Entries int
	// Ended means that nothing is played any more.
	Ended bool
}

// Turned folds in a turn of the episode.
func (p *Progress) Turned(t *Turned) {
	if p.playing(t.Attempt) {
		p.Entries++
		p.Open += t.Calls
	}
}

// Replied folds in a reply. One that comes after the episode ended, or to an attempt that
// was given up, changes nothing: nobody waits for it.
func (p *Progress) Replied(r *Replied) {
	if p.playing(r.Attempt) {
		p.Entries++
		p.Open = max(0, p.Open-1)
	}
}

// End folds in the episode's end: whatever has no reply is not asked for again.
func (p *Progress) End(e *Ended) {
	*p = Progress{Attempt: e.Attempt, Ended: true}
}

// playing says whether attempt is the one that is played. A later one than was known has
// begun with this entry: the calls of the one before are given up.
func (p *Progress) playing(attempt int) bool {
	if attempt > p.Attempt {
		*p = Progress{Attempt: attempt}
	}
	return attempt == p.Attempt && !p.Ended
}
