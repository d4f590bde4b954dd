// Part large bounds the memory of large answers. It promises that at most four answers of a client are kept beyond a size at
// the same time, and that the others wait until there is room or their context ends. It does not bound the number of small
// answers, nor streams, which may take minutes and must not wait for each other.

package transport

import "context"

// Min is the size from which an answer is large. Few answers are: it is the text of about 60,000 tokens.
const Min = 256 << 10

// atOnce is how many large answers are kept at the same time.
const atOnce = 4

// Places are what the answers of a client share. They may be used from several goroutines at once.
type Places chan struct{}

// NewLarge returns places that are free.
func NewLarge() Places { return make(Places, atOnce) }

// Enter waits for a place. Leave must follow, unless it fails.
func (p Places) Enter(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave frees a place.
func (p Places) Leave() { <-p }
