package auction

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/world"
	"parley/world/worldtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAuction(t *testing.T) {
	t.Parallel()
	worldtest.Exercise(t, Kind(), worldtest.Options{Answer: func(_ world.Call, r *rand.Rand) world.Reply {
		return world.Reply{JSON: json.RawMessage(fmt.Sprintf(`{"bid":%d}`, r.IntN(101)))}
	}})
}

// TestSecondPrice plays one round with known bids.
func TestSecondPrice(t *testing.T) {
	t.Parallel()
	w, err := definition{}.World(&Params{Bidders: 3, Rounds: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := world.Begin(w, world.Deal{Seed: 1})
	s.Next(nil)
	turn := s.Next([]world.Reply{{JSON: json.RawMessage(`{"bid":20}`)}, {JSON: json.RawMessage(`{"bid":70}`)}, {Failed: "timeout"}})
	if got := string(turn.Notes[0].Data); got != `{"bid":70,"price":20,"round":1}` || turn.Notes[0].Seat != "bidder2" {
		t.Errorf("sold to %s: %s", turn.Notes[0].Seat, got)
	}
	if turn.Outcome.Scores[0].Value != 0 || turn.Outcome.Scores[1].Value == 0 {
		t.Errorf("scores %+v", turn.Outcome.Scores)
	}
}

// TestTheDocShowsThis: every Go block of the document is part of this package, word by word.
func TestTheDocShowsThis(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "writing-a-world.md"))
	if err != nil {
		t.Fatal(err)
	}
	var source string
	for _, name := range []string{"auction.go", "auction_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source += string(b)
	}
	blocks := strings.Split(string(doc), "```go\n")
	if len(blocks) < 2 {
		t.Fatal("the document shows no Go")
	}
	for _, b := range blocks[1:] {
		code, _, _ := strings.Cut(b, "```")
		if !strings.Contains(source, code) {
			t.Errorf("the document shows what is not in the example:\n%s", code)
		}
	}
}
