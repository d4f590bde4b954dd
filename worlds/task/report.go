package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// report is the kind's part of a report.
type report struct {
	tasks, agents []string // in order of appearance
	rewards       exhibit.Crossed
	notes         exhibit.Counts
}

func newReport() *report { return &report{rewards: exhibit.Crossed{}, notes: exhibit.Counts{}} }

// Add adds an episode.
func (r *report) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var d Result
	agent := p.Spec.Lineup[Seat]
	if json.Unmarshal(raw, &d) != nil || d.Task == "" {
		return
	}
	exhibit.AddOnce(&r.tasks, d.Task)
	exhibit.AddOnce(&r.agents, agent)
	if d.Reward != nil && p.Outcome.Failed == "" {
		r.rewards.At(d.Task, agent, world.Bounds{}).Add(p.Unit, *d.Reward)
	}
	for what, is := range map[string]bool{"worked to its end": !d.TimedOut && d.Exit == 0 && d.Limit == "", "timed out": d.TimedOut, "exited with an error": !d.TimedOut && d.Exit != 0, "reached a limit": d.Limit != "", "changed nothing": d.Changed == 0} {
		if is {
			r.notes[[2]string{what, agent}]++
		}
	}
}

// maxShown is how many tasks a report shows.
const maxShown = 200

// Exhibits returns the rewards by task and agent, and how programs ended.
func (r *report) Exhibits() []exhibit.Exhibit {
	if len(r.tasks) == 0 {
		return nil
	}
	slices.Sort(r.tasks)
	shown := r.tasks[:min(len(r.tasks), maxShown)]
	caption := "The mean reward of each agent on each task."
	if len(r.tasks) > maxShown {
		caption += fmt.Sprintf(" The first %d of %d tasks are shown.", maxShown, len(r.tasks))
	}
	g := exhibit.Grid{Columns: append([]string{"task"}, r.agents...)}
	for _, t := range shown {
		row := []any{t}
		for _, a := range r.agents {
			if s := r.rewards[[2]string{t, a}]; s != nil {
				row = append(row, s)
			} else {
				row = append(row, "–")
			}
		}
		g.Rows = append(g.Rows, row)
	}
	return []exhibit.Exhibit{
		{Name: "task-rewards", Title: "Rewards by task", Caption: caption, Show: g},
		{Name: "task-ends", Title: "How programs ended", Caption: "Episodes by how the program ended; its result was checked all the same.", Show: r.notes.Grid("how", r.notes.Labels(), r.agents)},
	}
}

// story shows what the program wrote and changed, and what the check said.
func story(_ world.Played, transcript []world.TranscriptEntry) (all []exhibit.Exhibit) {
	for _, e := range transcript {
		var done world.Done
		if e.Note != nil || e.Act != nil || len(e.Reply.JSON) == 0 || json.Unmarshal(e.Reply.JSON, &done) != nil {
			continue
		}
		rows := [][]any{{"program", ending(done.Exit, done.TimedOut, done.Limit), seconds(done.Seconds)}}
		if c := done.Check; c != nil {
			rows = append(rows, []any{"check", ending(c.Exit, c.TimedOut, ""), seconds(c.Seconds)})
			for _, name := range slices.Sorted(maps.Keys(c.Rewards)) {
				rows = append(rows, []any{name, fmt.Sprint(c.Rewards[name]), ""})
			}
			if c.Failed != "" {
				rows = append(rows, []any{"no reward", c.Failed, ""})
			}
		}
		if done.Calls > 0 {
			calls := fmt.Sprintf("%d calls", done.Calls)
			if done.Calls == 1 {
				calls = "1 call"
			}
			rows = append(rows, []any{"model", fmt.Sprintf("%s, %d tokens in, %d out", calls, done.Input, done.Output), ""})
		}
		all = append(all, exhibit.Exhibit{Name: "task-end", Title: "What the program did", Show: exhibit.Grid{Columns: []string{"what", "how", "time"}, Rows: rows}})
		text := func(name, title, body string) {
			if strings.TrimSpace(body) != "" {
				all = append(all, exhibit.Exhibit{Name: name, Title: title, Show: exhibit.Text{Body: exhibit.Shorten(body, 40_000), Pre: true}})
			}
		}
		text("task-files", "Changed files", changed(done))
		text("task-stdout", "Standard output of the program", done.Stdout)
		text("task-stderr", "Standard error of the program", done.Stderr)
		if done.Check != nil {
			text("task-check", "Output of the check", done.Check.Stdout+done.Check.Stderr)
		}
	}
	return all
}

// ending says how a program ended.
func ending(exit int, late bool, limit string) string {
	out := fmt.Sprintf("exit code %d", exit)
	if late {
		out = "ended at its time limit"
	}
	if limit != "" {
		out += ", after the limit of " + limit
	}
	return out
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

// changed lists changed files with their texts.
func changed(done world.Done) string {
	var b strings.Builder
	for _, c := range done.Changed {
		fmt.Fprintf(&b, "%s %s", c.What, exhibit.Shorten(exhibit.Visible(c.Path), 200))
		if c.Size > 0 {
			fmt.Fprintf(&b, ", %d bytes", c.Size)
		}
		b.WriteString("\n")
		for line := range strings.Lines(exhibit.Shorten(c.Text, 4000)) {
			b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if done.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", done.More)
	}
	return b.String()
}

func tables() []part.NoteTable {
	return []part.NoteTable{{
		Name: "tasks", Doc: "What a program did on a task, and what it is worth.",
		Columns: []part.NoteColumn{
			{Name: "task", Type: part.NoteText, Doc: "the name of the task"},
			{Name: "agent", Type: part.NoteText, Doc: "who worked on it"},
			{Name: "reward", Type: part.NoteDouble, Doc: "the reward of the check"},
			{Name: "passed", Type: part.NoteBoolean, Doc: "whether that is enough"},
			{Name: "exit", Type: part.NoteInteger, Doc: "the exit code of the program; -1: it was ended"},
			{Name: "seconds", Type: part.NoteDouble, Doc: "how long it worked"},
			{Name: "timed_out", Type: part.NoteBoolean, Doc: "whether it reached its time limit"},
			{Name: "limit", Type: part.NoteText, Doc: "another limit that it reached"},
			{Name: "calls", Type: part.NoteInteger, Doc: "its calls of models"},
			{Name: "changed", Type: part.NoteInteger, Doc: "how many files it changed"},
			{Name: "check_exit", Type: part.NoteInteger, Doc: "the exit code of the check"},
			{Name: "check_seconds", Type: part.NoteDouble, Doc: "how long the check took"},
		},
		Rows: func(p world.Played, notes []world.Note) (rows [][]any) {
			for _, n := range notes {
				var r Result
				if n.Kind != "result" || json.Unmarshal(n.Data, &r) != nil {
					continue
				}
				var reward, passed any
				if r.Reward != nil {
					reward, passed = *r.Reward, r.Passed
				}
				rows = append(rows, []any{r.Task, p.Spec.Lineup[Seat], reward, passed, r.Exit, r.Seconds, r.TimedOut, r.Limit, r.Calls, r.Changed, r.CheckExit, r.CheckSeconds})
			}
			return rows
		},
	}}
}
