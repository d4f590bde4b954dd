package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/score"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/worker"
	"parley/journal"
	"parley/world"
)

// scoreCmd adds scores to a run.
type scoreCmd struct {
	File     string            `arg:"" help:"The run file whose episodes are scored. It is not changed." placeholder:"FILE"`
	With     string            `xor:"with" required:"" placeholder:"SCORER" help:"The scorer: a plan file of the kind rubric, such as trust.yaml, or a class in Python, such as polite.py:Politeness."`
	Name     string            `placeholder:"NAME" help:"Name of the scorer in reports, and of its run file. Default: the name of the class, or of the plan file without its ending."`
	Judge    map[string]string `placeholder:"SEAT=MODEL" help:"The model of a judge. Default: the one that the scorer names. Repeatable."`
	Labels   string            `xor:"with" required:"" placeholder:"TABLE" help:"Add labels of people from a .csv or .jsonl file with the columns episode, call, tag, verdict, note and by, as export --table labels writes it. Only episode is required, and one of tag, verdict and note."`
	Estimate bool              `help:"Print what scoring would cost, as parley check does, and stop. Nothing is asked."`
	playFlags
}

// Run scores the episodes that have ended. The scores are a run of their own, in a file beside the run file: it is
// resumed if it exists.
func (c *scoreCmd) Run(ctx context.Context, s *State) error {
	if c.Labels != "" {
		return c.addLabels(ctx, s)
	}
	if c.Detach || c.View {
		return exit.Usagef("--detach and --view: parley score has neither; look at its run file with parley view")
	}
	if err := c.check(); err != nil {
		return err
	}
	_, class, isClass := worker.Source(c.With)
	if !isClass && filepath.Ext(c.With) == ".py" {
		return exit.Usagef("--with %q: want a file and a class, such as polite.py:Politeness", c.With)
	}
	if c.Name == "" {
		c.Name = class
		if !isClass {
			c.Name = strings.TrimSuffix(filepath.Base(c.With), filepath.Ext(c.With))
		}
	}
	if strings.ContainsAny(c.Name, `/\.:`) || c.Name != terminal.Safe(c.Name) {
		return exit.Usagef("--name %q: want a word without / \\ . :", c.Name)
	}
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	var plan *planfile.Plan
	if isClass {
		plan, err = c.classPlan(ctx, s)
	} else {
		plan, err = c.rubricPlan(ctx, s)
	}
	if err != nil {
		return err
	}
	out := score.File(c.File, c.Name)
	if c.Estimate {
		check := &checkCmd{Plan: c.With, Episodes: 32, Latency: 5 * time.Second, JSON: c.JSON, trustFlags: c.trustFlags, reachFlags: c.reachFlags}
		return check.estimate(ctx, s, keys, estimateTarget{plan, out, "parley score " + terminal.ShellWord(c.File) + " --with " + terminal.ShellWord(c.With)})
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil { //nolint:gosec // scores are for others to read too
		return exit.Usagef("%w", err)
	}
	err = c.play(ctx, s, keys, app.Play{Plan: plan, PlanFile: c.File, File: out})
	if changed, ok := errors.AsType[*growth.ChangedError](err); ok {
		changed.Todo = "use --name for scores with another judge or other params"
	}
	return err
}

// scorer is a scorer that was started.
type scorer struct {
	kind world.Kind
	head *journal.Head // of the run that it scores
	// same reports whether a run of scores is of the same scorer, and not of one that was edited since.
	same func(*journal.Begun) bool
	// fixed means that it scores the episodes with which it began, since what it asks depends on all of them.
	fixed bool
}

// openScorer starts a scorer, and makes its kind known. run is the run file whose episodes it scores.
func (s *State) openScorer(ctx context.Context, name, run string, origin codeOrigin) (*scorer, error) {
	from, err := s.openScored(ctx, run)
	if err != nil {
		return nil, err
	}
	origin.Keys = append(origin.Keys, planfile.PeekJSON(from.head.Begun.Plan).Keys...) // the scorer may not have them either
	cfg, err := s.codeConfig(name, origin.Place, origin)
	if err != nil {
		return nil, err
	}
	pool, kind, err := worker.OpenScorer(cfg, func(episode int) (json.RawMessage, []string, error) {
		played, err := from.played(episode)
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(played)
		return raw, played.Seats(), err
	}, from.of)
	if err != nil {
		return nil, exit.Usagef("%s: %s", origin.Place, terminal.Safe(err.Error()))
	}
	s.pools = append(s.pools, pool)
	s.Kinds = append(slices.Clip(s.Kinds), kind)
	return &scorer{kind: kind, head: from.head, same: func(b *journal.Begun) bool { return sameCode(b.Code, pool.Code()) }}, nil
}

// scoredRun is a run that is scored.
type scoredRun struct {
	head   *journal.Head
	played func(episode int) (*score.Episode, error)
	of     results.Scorable
}

// openScored opens the run that is scored.
func (s *State) openScored(ctx context.Context, run string) (*scoredRun, error) {
	store, _, err := openRun(ctx, run)
	if err != nil {
		return nil, err
	}
	s.pools, s.scores = append(s.pools, store), true
	head, err := store.Head(ctx)
	if err != nil {
		return nil, playError(run, err)
	}
	return &scoredRun{
		head:   head,
		played: func(episode int) (*score.Episode, error) { return score.Played(ctx, store, head, episode) },
		of:     results.Outcomes(head, s.kindOf(head.Begun)).Scorable(),
	}, nil
}

// resumeScorer starts the scorer of a run of a scorer that is resumed. The plan of a rubric is recorded, so its file does not matter.
func (s *State) resumeScorer(ctx context.Context, what results.Scored, origin codeOrigin) (err error) {
	run := score.Origin(origin.file)
	var of *scorer
	if origin.Kind == score.RubricName {
		of, err = s.openRubric(ctx, run)
	} else {
		beside := filepath.Dir(run) // where the run is that it scores
		origin.folders, origin.reach.Folders = append(origin.folders, beside), append(slices.Clip(origin.reach.Folders), beside)
		of, err = s.openScorer(ctx, origin.Kind, run, origin)
	}
	if err == nil && of.head.Begun.Run != what.Run {
		err = exit.Usagef("%s scores another run than %s", origin.file, run)
	}
	return err
}

// maxEdits limits how many names the scores of an edited scorer can have.
const maxEdits = 1000

// begun returns what the scorer has begun to score, or nothing. If the file with the name of the scorer has scores of other code,
// as when the scorer was edited, it changes the name: both scores are kept.
func (c *scoreCmd) begun(ctx context.Context, s *State, of *scorer) (was results.Scored, err error) {
	first := c.Name
	for n := 2; n <= maxEdits; n++ {
		file := score.File(c.File, c.Name)
		about, err := outlineOf(ctx, file)
		if err != nil {
			return was, playError(file, err)
		}
		was = results.Scored{}
		if about.Begun != nil {
			if was, err = results.ScoredOf(about.Begun); err != nil {
				return was, playError(file, err)
			}
			if was.Run != of.head.Begun.Run {
				return was, exit.Usagef("%s has the scores of another run: use another --name, or delete it", file)
			}
			if b := about.Begun; b.Kind == score.RubricName && b.KindVersion != of.kind.Version {
				return was, exit.Usagef("%s has scores of %s version %d, and this is version %d: use another --name, or delete it", file, b.Kind, b.KindVersion, of.kind.Version)
			}
		}
		if about.Begun == nil || c.ChangedCode || of.same(about.Begun) {
			if c.Name != first {
				s.tell(fmt.Sprintf("%s has changed since the scores %s: its scores are named %s. Delete the files in %s that you do not need",
					c.With, first, c.Name, score.Folder(c.File)))
			}
			return was, nil
		}
		c.Name = fmt.Sprintf("%s-%d", first, n)
	}
	return was, exit.Usagef("%s has scores of %d versions of %s: delete some, or use another --name", score.Folder(c.File), maxEdits, first)
}

// sameCode reports whether the recorded code is this code.
func sameCode(recorded []journal.Code, now journal.Code) bool {
	return len(recorded) == 1 && recorded[0].Name == now.Name && maps.Equal(recorded[0].Files, now.Files)
}

// classPlan returns the plan of a scorer that is a class.
func (c *scoreCmd) classPlan(ctx context.Context, s *State) (*planfile.Plan, error) {
	of, err := s.openScorer(ctx, c.With, c.File, codeOrigin{file: "parley score", folders: []string{"."}, Named: planfile.Named{Place: "--with"}, typed: true})
	if err != nil {
		return nil, err
	}
	kind := of.kind
	judges, err := kind.Seats(kind.Defaults())
	if err != nil {
		return nil, exit.Usagef("--with: %s", terminal.Safe(err.Error()))
	}
	what, err := c.what(ctx, s, of, kind.Measures(kind.Defaults()))
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"kind": kind.Name, "episodes": 1, "params": map[string]any{results.ScoredParam: what}}
	var recorded struct {
		Providers json.RawMessage `json:"providers"`
	}
	if json.Unmarshal(of.head.Begun.Plan, &recorded) == nil && len(recorded.Providers) > 0 {
		doc["providers"] = recorded.Providers // judges may be where the agents are
	}
	if err := c.judges(kind, judges, doc); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	plan, err := planfile.Written(ctx, raw, s.Kinds, c.sets(), c.reach())
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	return plan, nil
}

// what returns what is scored: all episodes that have ended. A scorer that is fixed keeps those with which it began.
func (c *scoreCmd) what(ctx context.Context, s *State, of *scorer, measures []world.Measure) (results.Scored, error) {
	what := results.NewScored(of.head.Begun.Run, score.Ended(of.head), measures)
	was, err := c.begun(ctx, s, of)
	if err != nil {
		return what, err
	}
	if was.Run != "" && was.Episodes != what.Episodes && of.fixed {
		later, err := what.Without(was)
		if err != nil {
			return what, playError(score.File(c.File, c.Name), err)
		}
		s.tell(fmt.Sprintf("%s has episodes that ended after %s began to score it. They have no scores: %s. Categories are made for all episodes together: to score these too, use another --name",
			c.File, c.Name, terminal.Cut(later.Episodes, 200)))
		what.Episodes = was.Episodes
	}
	if what.Episodes == "" {
		return what, exit.Usagef("%s has no episode that ended without a failure: there is nothing to score", c.File)
	}
	return what, nil
}

// judges puts the models of --judge into a plan, and checks that every judge has a model.
func (c *scoreCmd) judges(kind world.Kind, seats []string, doc map[string]any) error {
	agents, lineup := map[string]any{}, map[string]string{}
	for seat, model := range c.Judge {
		if !slices.Contains(seats, seat) {
			return exit.Usagef("--judge %s=%s: the scorer has the judges %q", seat, model, seats)
		}
		agents[seat], lineup[seat] = map[string]string{"model": model}, seat
	}
	own := kind.Models(kind.Defaults())
	for _, seat := range seats {
		if own[seat] == "" && lineup[seat] == "" {
			return exit.Usagef("the judge %s has no model: add --judge %s=MODEL", seat, seat)
		}
	}
	if len(agents) > 0 {
		doc["agents"], doc["lineup"] = agents, lineup
	}
	return nil
}
