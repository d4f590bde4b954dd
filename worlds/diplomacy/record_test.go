package diplomacy

import (
	"encoding/json"
	"testing"

	"parley/world"
)

func note(kind, seat, data string) world.Note {
	return world.Note{Kind: kind, Seat: seat, Data: json.RawMessage(data)}
}

func TestRead(t *testing.T) {
	t.Parallel()
	g := readGame([]world.Note{
		note(noteMessage, "FRANCE", `{"phase":"S1901M","round":1,"to":"ALL","text":"Hello."}`),
		note(noteMessage, "FRANCE", `{"phase":"S1999M","round":1,"to":"ALL","text":"Of no phase."}`),
		note(noteDiary, "ITALY", `{"phase":"S1901M","about":"talks","text":"Hm."}`),
		note(noteRefused, "ITALY", `{"phase":"S1901M","what":"order","reason":"unreadable"}`),
		note(notePromises, "", `[{"phase":"S1901M","from":"FRANCE","to":"ITALY","kind":"hold","verdict":"kept"}]`),
		note(notePhase, "", `{"state":{"name":"S1901M"},"orders":{"FRANCE":[{"order":"A PAR H","results":["success"]}]}}`),
		note(notePhase, "", `{"state":{}}`), note(notePhase, "", `7`), note(noteDiary, "", `{"phase":`), note("other", "", `{}`),
		note(noteEnd, "", `{"reason":"year"}`),
	})
	if len(g.Phases) != 1 || g.End == nil || g.End.Reason != endYear {
		t.Fatalf("%+v", g)
	}
	p := g.Phases[0]
	if len(p.Messages) != 1 || p.Messages[0].From != "FRANCE" || len(p.Diary) != 1 || p.Diary[0].Power != "ITALY" || len(p.Promises) != 1 {
		t.Errorf("%+v", p)
	}
}

func TestPowerCounts(t *testing.T) {
	t.Parallel()
	p := &powerStats{Orders: map[string]map[string]int{"move": {"success": 3, "bounce": 1}, "hold": {"success": 4}, "support": {"cut": 2}}, Refused: map[string]int{"order: unreadable": 2, "message: empty": 5}}
	if n, ok := p.active(); n != 6 || ok != 3 {
		t.Errorf("active %d of %d", ok, n)
	}
	if n, illegal := p.written(); n != 12 || illegal != 2 {
		t.Errorf("%d of %d illegal", illegal, n)
	}
}
