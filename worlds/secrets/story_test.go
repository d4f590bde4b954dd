package secrets

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"parley/world"
	"parley/world/exhibit"
)

// TestLongStory checks that a story of very many messages stays short, tells every message that gives a secret away, and says
// what is missing; and that notes from anywhere are skipped.
func TestLongStory(t *testing.T) {
	t.Parallel()
	notes := []world.Note{{Kind: "secret", Seat: "first", Data: json.RawMessage(`"tiger"`)}, {Kind: "message", Data: json.RawMessage(`[]`)}, {Kind: "verdict", Data: json.RawMessage(`{"verdicts":3}`)}}
	for i := range 3 * maxStoryMessages {
		m := messageNote{Round: 1, Number: i, To: "second", Text: "x"}
		if i%maxStoryMessages == maxStoryMessages-1 {
			m.Reveals, m.Text = "said", strings.Repeat("tiger ", maxStoryText)
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		notes = append(notes, world.Note{Kind: "message", Seat: "first", Data: raw})
	}
	data := json.RawMessage(`{"conversations":[{"round":1,"seats":["first","second"],"revealed":["first"]}],"points":{"first":0,"second":3},"winner":"second"}`)
	story := gameStory(world.Played{Outcome: world.Outcome{Data: data}}, entriesOf(notes))
	frames := story[0].Show.(exhibit.Replay).Frames
	marked, size := 0, 0
	for _, f := range frames {
		for _, l := range f.Lines {
			size += len(l.Text)
			if strings.Contains(l.Mark, "gives its own secret “tiger” away (said)") {
				marked++
			}
		}
	}
	end := fmt.Sprint(frames[len(frames)-1].Lines)
	if frames[0].Turn != "0" || frames[1].Turn != "3" {
		t.Errorf("the frames begin in the turns %q and %q", frames[0].Turn, frames[1].Turn)
	}
	if marked != 3 || size > 20*maxStoryText || !strings.Contains(end, "1998 messages after the first 1000") || !strings.Contains(end, "second won") {
		t.Errorf("%d marked, %d bytes: %s", marked, size, end)
	}
	if got := gameStory(world.Played{}, entriesOf(notes[1:3])); got != nil {
		t.Errorf("%+v", got)
	}
}

// entriesOf returns a transcript of notes alone, one in each turn.
func entriesOf(notes []world.Note) (entries []world.TranscriptEntry) {
	for i, n := range notes {
		entries = append(entries, world.TranscriptEntry{Turn: strconv.Itoa(i), Note: &n})
	}
	return entries
}
