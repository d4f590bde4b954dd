package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// What the files of the viewer's benchmark hold.
const (
	viewEpisodes = 1_000_000
	viewMessages = 10_000
	viewPrompt   = 40 // messages of a request in the long transcript
)

// viewFile writes a run file with f, unless it is there.
func viewFile(dir, name string, specs world.Specs, f func(put func(...journal.Entry) error) error) (path string, err error) {
	path = filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	ctx := context.Background()
	store, err := runfile.Open(ctx, path+".part", runfile.Create)
	if err != nil {
		return "", err
	}
	put := func(entries ...journal.Entry) error { return store.Append(ctx, entries...) }
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	err = put(&journal.Begun{Version: journal.Version, Run: name, Kind: "duel", KindVersion: 1, At: at, Tool: "bench", Plan: []byte(`{}`), Agents: []world.Agent{{Name: "small", Model: "lab/small"}, {Name: "large", Model: "lab/large"}}},
		&journal.Opened{At: at}, &journal.Staged{Specs: specs})
	if err == nil {
		err = f(put)
	}
	if err == nil {
		err = put(&journal.Closed{At: at.Add(time.Hour), State: journal.Complete})
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(path+".part", path)
}

// viewReply is one call of an episode.
func viewReply(t journal.Turn, seat string, n int, messages []llm.Message) *journal.Replied {
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	return &journal.Replied{
		Turn: t, Seat: seat, Label: "say", Agent: "small", At: at.Add(time.Duration(n) * time.Millisecond),
		Request: &llm.Request{Model: "lab/small", Messages: messages},
		Response: &llm.Response{
			Text: fmt.Sprintf("I have thought about it, and my word number %d is %x.", n, n*2654435761%1_000_003), Finish: llm.FinishStop, Provider: "lab", Model: "small",
			Usage:    llm.Usage{Input: 100 + n%900, Output: 20 + n%50},
			Metadata: llm.Metadata{Attempts: 1, Cost: llm.Money(1000 + n%7919), Latency: time.Duration(200+n%1500) * time.Millisecond},
		},
	}
}

// viewMillion writes a run of a million episodes with one call and two scores each.
func viewMillion(dir string) (string, error) {
	even := world.Spec{Kind: "duel", Cell: "small against large", Lineup: map[string]string{"first": "small", "second": "large"}}
	return viewFile(dir, "million.parley", world.Repeat(even, viewEpisodes), func(put func(...journal.Entry) error) error {
		const atOnce = 2000
		prompt := []llm.Message{llm.System("You play a game of words."), llm.User("Say your word.")}
		for first := 0; first < viewEpisodes; first += atOnce {
			var entries []journal.Entry
			for i := first; i < first+atOnce; i++ {
				r := viewReply(journal.Turn{Episode: i}, "first", i, prompt)
				end := &journal.Ended{Episode: i, At: r.At.Add(time.Second), Outcome: world.Outcome{Scores: []world.Score{{Seat: "first", Name: "points", Value: float64(i * 31 % 101)}, {Seat: "second", Name: "points", Value: float64(i * 17 % 103)}}}}
				if i%97 == 0 {
					end.Outcome = world.Outcome{Failed: "the provider refused"}
				}
				entries = append(entries, &journal.Turned{Turn: r.Turn, Calls: 1}, r, end)
			}
			if err := put(entries...); err != nil {
				return err
			}
		}
		return nil
	})
}

// viewLong writes a run of one episode with ten thousand messages.
func viewLong(dir string) (string, error) {
	spec := world.Spec{Kind: "duel", Lineup: map[string]string{"first": "small", "second": "large"}}
	return viewFile(dir, "long.parley", world.List(spec), func(put func(...journal.Entry) error) error {
		history := []llm.Message{llm.System("You play a game of words.")}
		for i := range viewMessages {
			seat := []string{"first", "second"}[i%2]
			messages := append([]llm.Message{history[0]}, history[max(1, len(history)-viewPrompt):]...)
			r := viewReply(journal.Turn{Turn: i}, seat, i, messages)
			if err := put(&journal.Turned{Turn: r.Turn, Calls: 1}, r); err != nil {
				return err
			}
			history = append(history, llm.User(r.Response.Text))
		}
		return put(&journal.Ended{Episode: 0, Outcome: world.Outcome{Scores: []world.Score{{Seat: "first", Name: "points", Value: 1}}}})
	})
}
