package large

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// TestFewAtOnce: of many large answers a few are read at once, small ones are not kept waiting, and what waits ends with its context.
func TestFewAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		places := New()
		read := func(ctx context.Context, size int) (*Body, error) {
			b := new(Body)
			b.Take(ctx, strings.NewReader(strings.Repeat("a", size)), places)
			b.small = 1000
			n, err := io.Copy(io.Discard, struct{ io.Reader }{b})
			if err == nil && n != int64(size) {
				t.Errorf("%d bytes of %d", n, size)
			}
			return b, err
		}
		var held []*Body
		for range atOnce {
			b, err := read(t.Context(), 100_000)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, b)
		}
		small, err := read(t.Context(), 999)
		if err != nil {
			t.Error(err)
		}
		small.Leave()
		gone := errors.New("the call was given up")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 2)
		go func() {
			b, err := read(ctx, 100_000)
			b.Leave()
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Error("one more was read")
		}
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Error(err)
		}
		go func() {
			b, err := read(t.Context(), 100_000)
			b.Leave()
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Error("one more was read")
		}
		for _, b := range held {
			b.Leave()
			b.Leave() // once is enough
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(places) > 0 {
			t.Errorf("%d places are taken", len(places))
		}
	})
}
