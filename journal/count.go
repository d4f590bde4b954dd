package journal

import "context"

// Counts is how many replies a run has, by what was asked.
type Counts struct {
	Asks int // questions to models and people: what a user sees as calls
	Acts int // on environments, and on other things outside of the world
	Bots int // answers of bots
}

// Counter is a Journal that counts its replies without reading them.
type Counter interface {
	Count(ctx context.Context) (Counts, error)
}

// Count counts the replies in j.
func Count(ctx context.Context, j Journal) (c Counts, err error) {
	if counter, ok := j.(Counter); ok {
		return counter.Count(ctx)
	}
	err = j.Read(ctx, Whole(), func(e Entry) error {
		if r, ok := e.(*Replied); ok {
			c.Add(r)
		}
		return nil
	})
	return c, err
}

// Add counts a reply.
func (c *Counts) Add(e *Replied) {
	switch {
	case e.Act != nil:
		c.Acts++
	case e.Request != nil:
		c.Asks++
	default:
		c.Bots++
	}
}
