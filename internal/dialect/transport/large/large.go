// Package large bounds the memory that large answers take together: of one server, only a few are read beyond a size at once. It
// promises that the others wait, that what waits ends with its context, and that an answer that is read needs no second place.
package large

import (
	"context"
	"io"
	"math"
)

// The sizes from which answers are large. A stream has 200 bytes and more for a token, most of which nobody keeps, and the longest
// honest ones take minutes: they must not wait for each other.
const (
	MinWhole  = 1 << 20
	MinStream = 32 << 20
)

// atOnce is how many large answers of a server are read at once.
const atOnce = 4

// Places are what the answers of a server share. They may be used from several goroutines at once.
type Places chan struct{}

// New returns places that are free.
func New() Places { return make(Places, atOnce) }

// Body is the body of an answer. Its zero value has no place, and Leave does nothing.
type Body struct {
	body   io.Reader
	places Places
	small  int64 // bytes that are left until it needs a place
	has    bool
	ctx    context.Context //nolint:containedctx // of the answer
}

// Take makes b read body, and wait for a place when it has read MinStream bytes. Call Leave when what was read is no longer in use.
func (b *Body) Take(ctx context.Context, body io.Reader, places Places) {
	*b = Body{body: body, places: places, small: MinStream, ctx: ctx}
}

// Whole makes b wait when it has read MinWhole bytes.
func (b *Body) Whole() { b.small = MinWhole }

// Forget makes b never wait: its reader keeps little of it.
func (b *Body) Forget() { b.small = math.MaxInt64 }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.small <= 0 && !b.has {
		select {
		case b.places <- struct{}{}:
			b.has = true
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		}
	}
	n, err := b.body.Read(p)
	b.small -= int64(n)
	return n, err
}

// Leave frees the place.
func (b *Body) Leave() {
	if b.has {
		<-b.places
		b.has = false
	}
}
