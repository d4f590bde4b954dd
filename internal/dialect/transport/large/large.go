// Package large bounds the memory that large answers take together: of one server, only a few are read beyond a size at once. It
// promises that the others wait, that what waits ends with its context, and that an answer that is read needs no second place.
package large

import (
	"context"
	"io"
)

// The sizes from which answers are large. Most of a stream is not its text.
const (
	MinWhole  = 1 << 20
	MinStream = 16 << 20
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

// Take makes b read body. It waits for a place when small bytes were read. Call Leave when what was read is no longer in use.
func (b *Body) Take(ctx context.Context, body io.Reader, places Places, small int64) {
	*b = Body{body: body, places: places, small: small, ctx: ctx}
}

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
