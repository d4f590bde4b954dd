package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLink: a link does not work while nothing is heard, or a write takes much longer than usual.
func TestLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLink()
		want := func(works bool, when string) {
			t.Helper()
			if l.works(time.Now()) != works {
				t.Errorf("%s: it works: %t", when, !works)
			}
		}
		want(true, "at first")
		time.Sleep(unheard + 1)
		want(false, "nothing was heard")
		l.hear()
		want(true, "something was heard")
		slow, other := l.write(), l.write()
		time.Sleep(slowWrite + 1)
		want(false, "two writes are open")
		other(nil)
		want(false, "one write is open")
		slow(errors.New("the lot was dropped"))
		want(true, "no write is open")
		for range 100 {
			end := l.write()
			time.Sleep(slowWrite)
			end(nil)
		}
		end := l.write()
		time.Sleep(2 * slowWrite)
		want(true, "writes are slow")
		time.Sleep(3 * slowWrite)
		l.hear()
		want(false, "one write is much slower")
		end(nil)
		want(true, "it has ended")
	})
}
