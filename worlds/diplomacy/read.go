package diplomacy

import (
	"encoding/json"

	"parley/world"
)

// RecordGame is a whole game, from its notes.
type RecordGame struct {
	Phases []Phase
	End    *End // nil: the game is not over
}

// Read builds a game from the notes of an episode, in the order of its transcript. It skips
// notes that it cannot read.
func Read(notes []world.Note) RecordGame {
	var g RecordGame
	at := map[string]int{} // phases by name
	var messages []Message
	var diary []Entry
	var refused []Refused
	var promises []Promise
	for _, n := range notes {
		switch n.Kind {
		case notePhase:
			if p, ok := read[Phase](n); ok && p.State.Name != "" {
				at[p.State.Name] = len(g.Phases)
				g.Phases = append(g.Phases, p)
			}
		case noteMessage:
			if m, ok := read[Message](n); ok {
				m.From = n.Seat
				messages = append(messages, m)
			}
		case noteDiary:
			if e, ok := read[Entry](n); ok {
				e.Power = n.Seat
				diary = append(diary, e)
			}
		case noteRefused:
			if r, ok := read[Refused](n); ok {
				r.Power = n.Seat
				refused = append(refused, r)
			}
		case notePromises:
			list, _ := read[[]Promise](n)
			promises = append(promises, list...)
		case noteEnd:
			if e, ok := read[End](n); ok {
				g.End = &e
			}
		}
	}
	putRecord(g.Phases, at, messages, func(m Message) string { return m.Phase }, func(p *Phase, m Message) { p.Messages = append(p.Messages, m) })
	putRecord(g.Phases, at, diary, func(e Entry) string { return e.Phase }, func(p *Phase, e Entry) { p.Diary = append(p.Diary, e) })
	putRecord(g.Phases, at, refused, func(r Refused) string { return r.Phase }, func(p *Phase, r Refused) { p.Refused = append(p.Refused, r) })
	putRecord(g.Phases, at, promises, func(r Promise) string { return r.Phase }, func(p *Phase, r Promise) { p.Promises = append(p.Promises, r) })
	return g
}

func read[T any](n world.Note) (v T, ok bool) {
	ok = json.Unmarshal(n.Data, &v) == nil
	return v, ok
}

// putRecord gives each item to the phase it belongs to.
func putRecord[T any](phases []Phase, at map[string]int, items []T, phase func(T) string, add func(*Phase, T)) {
	for _, item := range items {
		if i, ok := at[phase(item)]; ok {
			add(&phases[i], item)
		}
	}
}
