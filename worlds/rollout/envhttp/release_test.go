package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"parley/journal"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// TestReleaseEpisode checks that the environment of an episode that ends early is free for the next.
func TestReleaseEpisode(t *testing.T) {
	t.Parallel()
	f := newFarm(t, nil)
	params := rules.Definition{}.Defaults()
	must(t, json.Unmarshal(fmt.Appendf(nil, `{%s,"servers":[%q],"pool":{"per_server":1,"patience":0.05}}`, mazes, f.URL), params))
	a, err := New(params, "run", nil)
	must(t, err)
	t.Cleanup(func() { a.Close(t.Context()) })
	body := json.RawMessage(fmt.Sprintf(`{"env":%q,"seed":1}`, params.Env))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or it would wait for the first for ever
	t.Cleanup(cancel)
	for episode := range 3 {
		_, err := a.Act(ctx, journal.Turn{Episode: episode}, 0, "", world.Act{Name: "open", Body: body})
		must(t, err)
		a.ReleaseEpisode(ctx, episode)
		a.ReleaseEpisode(ctx, episode) // it has nothing any more
	}
}
