// Package clustertest has what the tests of a cluster's parts share: a hub, and a run of a world that asks nothing.
package clustertest

import (
	"testing"

	"github.com/nats-io/nats.go"

	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/world"
)

// Run is the name of the run.
const Run = "toy1"

// toy is a kind of world that asks nothing.
type toy struct{}

func (toy) About() world.About                { return world.About{Name: "toy", Version: 1, Doc: "Nothing."} }
func (toy) Defaults() *struct{}               { return &struct{}{} }
func (toy) Seats(*struct{}) ([]string, error) { return []string{"nobody"}, nil }
func (toy) World(*struct{}, world.Lineup) (world.World, error) {
	return world.Func(func(*world.Table) world.Outcome { return world.Outcome{Data: "played"} }), nil
}

// Kind returns the kind of the run's world.
func Kind() world.Kind { return world.Define(toy{}) }

// Config returns the run, with so many episodes, in one process.
func Config(j journal.Journal, episodes int) engine.Config {
	spec := world.Spec{Kind: "toy", Params: []byte("{}"), Lineup: map[string]string{"nobody": "me"}}
	return engine.Config{
		Journal: j, Kind: Kind(), Plan: world.Repeat(spec, episodes),
		Begun: journal.Begun{Version: journal.Version, Run: Run, Kind: "toy", KindVersion: 1, Agents: []world.Agent{{Name: "me", Bot: "none"}}},
	}
}

// Hub starts a hub that the end of the test stops.
func Hub(t *testing.T, c hub.Config) *hub.Hub {
	t.Helper()
	h, err := hub.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Connect connects to a hub until the test ends.
func Connect(t *testing.T, h *hub.Hub) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(h.URL(), nats.Token(h.Token()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
