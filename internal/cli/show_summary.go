package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/score"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
)

// summaryFlags ask a model for a summary of an episode.
type summaryFlags struct {
	Summary string   `placeholder:"MODEL" help:"With --story: a model writes a summary of the episode, such as openai/gpt-5-mini. It is recorded beside the run file, and asked for once."`
	Budget  *float64 `placeholder:"USD" help:"With --summary: maximum cost of the summary."`
	trustFlags
}

// summaryAgent is the seat, the agent and the question of a summary.
const summaryAgent = "summary"

const (
	summaryAsk    = "What happened in this episode, from the beginning to the end? Write a summary of at most 200 words for somebody who did not read it: who wanted what, the turning points, and how it ended."
	summaryTokens = 2000
)

// write asks for the summary of an episode, unless there is one already. It is a run of a scorer with one episode and one
// question: recorded, priced and resumed as every run is.
func (f *summaryFlags) write(ctx context.Context, s *State, file string, episode int) error {
	of, err := s.openRubric(ctx, file)
	if err != nil {
		return err
	}
	if of.head.Begun == nil || !slices.Contains(score.Ended(of.head), episode) {
		return exit.Usagef("--summary: episode %d of %s has not ended, or it failed: there is nothing to summarize", episode, file)
	}
	name := f.name(episode)
	if done, err := f.done(ctx, file, of.head, name, episode); done || err != nil {
		return err
	}
	plan, flags, err := f.plan(ctx, s, of.head, episode)
	if err != nil {
		return err
	}
	keys, err := flags.gate(s)
	if err != nil {
		return err
	}
	out := score.File(file, name)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil { //nolint:gosec // scores are for others to read too
		return exit.Usagef("%w", err)
	}
	err = flags.play(ctx, s, keys, app.Play{Plan: plan, PlanFile: file, File: out})
	about, broken := outlineOf(context.WithoutCancel(ctx), out)
	if err != nil && err.Error() == "" { // it played quietly
		return &exit.Error{Code: exit.CodeOf(err), Err: f.failure(context.WithoutCancel(ctx), about, out)}
	}
	if err := cmp.Or(err, broken); err != nil {
		return playError(out, err)
	}
	done, err := f.done(ctx, file, of.head, name, episode)
	if err == nil && !done {
		err = f.failure(ctx, about, out)
	}
	if err == nil && about.Replies > 0 {
		s.tell("the summary: " + costText(about.Replies, about.Spent) + ", recorded in " + out)
	}
	return err
}

// failure says why there is no summary, and what to do.
func (f *summaryFlags) failure(ctx context.Context, about runfile.Outline, out string) error {
	why, next := about.Last.Reason.String(), "The same command continues it"
	switch {
	case about.Last.Reason.Kind == journal.ByBudget:
		next = "Give a larger --budget"
	case why == "":
		failed, err := failedCall(ctx, out)
		if err != nil {
			return playError(out, err)
		}
		why, next = failed, "To ask again, delete "+out
		if about.Spent > 0 {
			next = "It cost " + about.Spent.String() + ". " + next
		}
	}
	why = strings.TrimPrefix(terminal.OneLine(why), f.Summary+": ")
	return fmt.Errorf("show: %s wrote no summary: %s. %s", f.Summary, terminal.Safe(terminal.Cut(strings.TrimSuffix(why, "."), 600)), terminal.Safe(next))
}

// failedCall returns why the last call of a run with one episode failed, or what is wrong with its answer.
func failedCall(ctx context.Context, file string) (why string, err error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	entries, err := journal.Episode(ctx, store, 0)
	why = "its answer cannot be used: parley show " + terminal.ShellWord(file) + " --episode 0 shows it"
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Error != nil {
			why = r.Error.Error()
		}
	}
	return why, err
}

// name returns the name of the scorer: the episode and the model, which may have letters that a name cannot have.
func (f *summaryFlags) name(episode int) string {
	digest := sha256.Sum256([]byte(f.Summary + "\n" + summaryAsk))
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, f.Summary)
	return fmt.Sprintf("summary-e%d-%.40s-%x", episode, plain, digest[:3])
}

// done reports whether the summary is recorded.
func (f *summaryFlags) done(ctx context.Context, file string, head *journal.Head, name string, episode int) (bool, error) {
	texts, err := score.Texts(ctx, file, head.Begun.Run, episode)
	return slices.ContainsFunc(texts, func(t score.Text) bool { return t.Scorer == name }), playError(file, err)
}

// plan returns the plan of the run that writes the summary, and how it is played.
func (f *summaryFlags) plan(ctx context.Context, s *State, head *journal.Head, episode int) (*planfile.Plan, *playFlags, error) {
	flags := &playFlags{Quiet: true, Budget: f.Budget, trustFlags: f.trustFlags}
	doc := map[string]any{
		"kind": score.Name, "episodes": 1,
		"agents": map[string]any{summaryAgent: map[string]any{"model": f.Summary, "max_tokens": summaryTokens}},
		"params": map[string]any{
			"judges":      []string{summaryAgent},
			"questions":   map[string]any{summaryAgent: score.Question{Ask: summaryAsk, Per: "episode", Text: true}},
			results.Param: results.NewScored(head.Begun.Run, []int{episode}, nil),
		},
	}
	var recorded struct {
		Providers json.RawMessage `json:"providers"`
	}
	if json.Unmarshal(head.Begun.Plan, &recorded) == nil && len(recorded.Providers) > 0 {
		doc["providers"] = recorded.Providers
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, err
	}
	plan, err := planfile.Written(ctx, raw, s.Kinds, flags.sets(), flags.reach())
	if err != nil {
		return nil, nil, exit.Usagef("--summary %s: %w", f.Summary, err)
	}
	return plan, flags, nil
}
