package score

import (
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/rubric"
)

// reading returns the record for the judges. Before a call are the notes of its turn and of those before.
func (p *Params) reading(of *Episode) *rubric.Record {
	record, notes := &rubric.Record{Read: p.Read}, of.Notes
	write := func(n int) {
		for _, note := range notes[:n] {
			record.Note(note.Note)
		}
		notes = notes[n:]
	}
	for i := range of.Calls {
		c := &of.Calls[i]
		for n := len(notes); n > 0; n-- {
			if notes[n-1].Turn == c.Turn {
				write(n)
				break
			}
		}
		strand := strings.TrimRight(c.Turn, "0123456789")
		record.Call(strand, &world.Call{Seat: c.Seat, Act: c.Act, Ask: llm.Request{Messages: c.Messages}}, &c.Reply)
	}
	write(len(notes))
	return record
}
