package journal_test

import (
	"context"
	"fmt"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// small is a journal in memory of a run that was killed: one of two episodes has ended, and the
// other waits for a reply.
func small() *journal.Memory {
	j := &journal.Memory{}
	say := func(episode int, text string) *journal.Replied {
		return &journal.Replied{
			Turn: journal.Turn{Episode: episode}, Seat: "poet", Label: "line", Agent: "me",
			Response: &llm.Response{Text: text, Metadata: llm.Metadata{Cost: llm.Dollar / 100}},
		}
	}
	_ = j.Append(context.Background(), // Memory never fails
		&journal.Begun{Version: journal.Version, Run: "example", Kind: "duet", KindVersion: 1},
		&journal.Opened{},
		&journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duet"}, 2)},
		&journal.Turned{Turn: journal.Turn{Episode: 0}, Calls: 1},
		&journal.Turned{Turn: journal.Turn{Episode: 1}, Calls: 1},
		say(0, "the sea"),
		&journal.Ended{Episode: 0, Outcome: world.Outcome{Scores: []world.Score{{Name: "rhymes", Value: 1}}}},
	)
	return j
}

// A head is the state of a run without its calls: how far it has come, what it has cost, and what
// must be done again.
func ExampleHead() {
	head, err := small().Head(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d ended, %d playing, %v spent\n", head.Begun.Run, head.Ended.Len(), len(head.Playing), head.Spent)
	if head.Cut {
		fmt.Println("cut off: calls to ask again:", head.Lost)
	}
	for spec, e := range head.Played() {
		fmt.Println("episode", e.Episode, "of", spec.Kind, e.Outcome.Scores)
	}
	// Output:
	// example: 1 ended, 1 playing, $0.01 spent
	// cut off: calls to ask again: 1
	// episode 0 of duet [{ rhymes 1}]
}

// The turns and replies of one episode can be read separately.
func ExampleEpisode() {
	entries, err := journal.Episode(context.Background(), small(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			fmt.Println("turn", e.Turn.Turn, "asks", e.Calls)
		case *journal.Replied:
			fmt.Printf("%s: %s\n", e.Seat, e.Reply().Text)
		}
	}
	// Output:
	// turn 0 asks 1
	// poet: the sea
}
