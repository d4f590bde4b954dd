package transport

import (
	"net/url"
	"testing"
)

// TestRoom checks that calls over HTTP/2 share connections up to a number, and that a call that has ended makes room.
func TestRoom(t *testing.T) {
	t.Parallel()
	p := newPool(true, &url.URL{Scheme: "http", Host: "lab.test"})
	defer p.Close()
	var loans []lease
	for range 2 { // the second time nothing is new
		for range maxStreams + 1 {
			l, err := p.Take(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			loans = append(loans, l)
		}
		if len(p.shards) != 2 || p.shards[0].load != maxStreams || p.shards[1].load != 1 {
			t.Errorf("%d connections", len(p.shards))
		}
		for _, l := range loans {
			p.Give(l)
		}
		loans = nil
		for _, s := range p.shards {
			if s.load != 0 {
				t.Errorf("a connection is still counted as carrying %d calls", s.load)
			}
		}
	}
}
