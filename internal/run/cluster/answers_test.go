package cluster

import (
	"testing"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/cache"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
)

// TestAnswers: an answer that one worker saves is there for another of the same run. One that is damaged, or of another key, is not stored, and the
// worker of another run gets none.
func TestAnswers(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	folder, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	coordinator := clustertest.Connect(t, h)
	if _, err := coordinator.Subscribe(hub.CacheSubject("a1"), (&answers{folder}).receive); err != nil {
		t.Fatal(err)
	}
	if err := coordinator.Flush(); err != nil {
		t.Fatal(err)
	}
	worker := func(run string) Answers {
		options, _ := hub.Options(hub.WorkerToken(h.Token(), run))
		nc, err := nats.Connect(h.URL(), append(options, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return Answers{Conn: nc, Run: "a1"}
	}
	first, second, other := worker("a1"), worker("a1"), worker("b2")
	key, bad := [32]byte{1}, [32]byte{2}
	framed := cache.Frame(key, []byte("answer"))
	for _, err := range []error{first.Save(bad, framed), first.Save(key, framed[:len(framed)-1]), other.Save(bad, cache.Frame(bad, []byte("a lie"))), other.Conn.Flush()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range [][32]byte{key, bad} {
		if got, err := first.Load(t.Context(), key); got != nil || err != nil { // it is answered after what was saved
			t.Errorf("%q %v, want nothing", got, err)
		}
	}
	if err := first.Save(key, framed); err != nil {
		t.Fatal(err)
	}
	for _, a := range []Answers{first, second} {
		if got, err := a.Load(t.Context(), key); err != nil || string(got) != string(framed) {
			t.Errorf("%q %v", got, err)
		}
	}
	if got, err := other.Load(t.Context(), key); got != nil || err == nil {
		t.Errorf("a worker of another run got %q", got)
	}
	if err := first.Save(key, make([]byte, first.Conn.MaxPayload())); err == nil {
		t.Error("an answer that is too large was sent")
	}
}
