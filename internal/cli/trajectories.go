package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/read/training"
	"parley/llm"
)

// trajectoriesCmd writes the training data of a run. The trainer's queries have the same names.
type trajectoriesCmd struct {
	File   string `arg:"" placeholder:"FILE" help:"A run file. The run may still be in progress."`
	Shape  string `default:"rows" enum:"rows,sequences,trl-sft,trl-dpo,trl-grpo,slime,verl,areal,openai-ft" placeholder:"SHAPE" help:"rows, one for each answer; sequences of tokens; or the records that a trainer reads: ${enum}. Default: ${default}."`
	Format string `placeholder:"FORMAT" help:"jsonl or parquet. Default: the ending of --out; else jsonl."`
	Out    string `placeholder:"FILE" help:"The file to write. Default: standard output."`
	Force  bool   `help:"Overwrite an existing file."`

	Status        []string `group:"Which rows:" placeholder:"STATUS" help:"Only episodes with this status: completed, truncated or failed. Default: all."`
	Trainable     bool     `group:"Which rows:" help:"Only rows that can be trained on."`
	Whole         bool     `group:"Which rows:" help:"Only complete groups, with all of their episodes."`
	MinReward     *float64 `group:"Which rows:" placeholder:"N" help:"Only agents that got at least this reward in the episode. Those of failed episodes got none."`
	Unequal       bool     `group:"Which rows:" help:"Only groups whose episodes did not all get the same reward."`
	WeightVersion *int     `group:"Which rows:" placeholder:"N" help:"The current version of the weights: only groups answered by it, or by a version at most --max-lag older."`
	MaxLag        int      `group:"Which rows:" placeholder:"N" help:"How much older the weights may be; see --weight-version. Default: 0."`
}

// trainingShapes are the records that trainers read.
func trainingShapes() (names []string) {
	for _, s := range training.Shapes() {
		if s != training.Rows && s != training.Sequences {
			names = append(names, string(s))
		}
	}
	return names
}

// Run writes the rows.
func (c *trajectoriesCmd) Run(ctx context.Context, s *State) (err error) {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	format, err := c.format()
	if err != nil {
		return err
	}
	if c.Out == "" && format == training.Parquet && widthOf(s.Stdout) > 0 {
		return exit.Usagef("parquet is binary and cannot be shown on a terminal; name a file with --out, or redirect standard output")
	}
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ctx, end := untilSignal(ctx, s)
	defer end()
	var account training.Account
	write := func(w io.Writer) (err error) {
		account, err = training.Write(ctx, w, store, s.kindOf(about.Begun), filter, training.Shape(c.Shape), format)
		return err
	}
	if c.Out == "" {
		if err := write(s.Stdout); err != nil {
			return pipeEnd(playError(c.File, err))
		}
		if left := leftOut(account, training.Shape(c.Shape)); left != "" {
			fmt.Fprintln(s.Stderr, "parley: "+c.File+": "+left)
		}
		return reportLosses(s, store)
	}
	out := output.File{Flag: "--out", Path: c.Out, Force: c.Force, Inputs: []string{c.File}}
	if _, err := out.Check(); err != nil {
		return err
	}
	lost, err := readUndamaged(ctx, s, store, func() error { return out.Write(write) })
	if err != nil {
		return playError(c.File, err)
	}
	left := leftOut(account, training.Shape(c.Shape))
	if left != "" {
		left = ": " + left
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %d %s%s\n", c.Out, account.Rows, c.records(), left)
	return cmp.Or(err, lost)
}

// records names what was written.
func (c *trajectoriesCmd) records() string {
	switch training.Shape(c.Shape) {
	case training.Rows:
		return "rows of trajectories"
	case training.Sequences:
		return "sequences"
	default:
		return "records for " + c.Shape
	}
}

// format returns the format of the flag, or of the file's name.
func (c *trajectoriesCmd) format() (training.Format, error) {
	given := training.Format(c.Format)
	switch {
	case c.Format == "" && c.Out == "":
		return training.JSONL, nil
	case c.Format == "":
		given = training.Format(strings.TrimPrefix(strings.ToLower(filepath.Ext(c.Out)), "."))
	}
	lines := slices.Contains(trainingShapes(), c.Shape) // of JSON only
	switch {
	case slices.Contains(training.Formats(), given) && (!lines || given == training.JSONL):
		return given, nil
	case c.Format == "" && lines:
		return "", exit.Usagef("--out %s: %s is written as JSON lines; use a name that ends in .jsonl", c.Out, c.Shape)
	case c.Format == "":
		return "", exit.Usagef("--out %s: the name ends in neither .jsonl nor .parquet; add --format jsonl or --format parquet", c.Out)
	case lines:
		return "", exit.Usagef("--format %s: %s is written as JSON lines; leave out --format", c.Format, c.Shape)
	case c.Format == "csv":
		return "", exit.Usagef("--format csv: %s contain lists, so csv is not possible; want jsonl or parquet", c.Shape)
	}
	return "", exit.Usagef("--format %s: %s are written as jsonl or parquet", c.Format, c.Shape)
}

// filter returns the filter of the flags.
func (c *trajectoriesCmd) filter() (training.Filter, error) {
	out := training.Filter{Trainable: c.Trainable, Whole: c.Whole, Unequal: c.Unequal, MinReward: c.MinReward, Version: c.WeightVersion, Lag: c.MaxLag}
	for _, name := range c.Status {
		s, err := training.ParseStatus(name)
		if err != nil {
			return out, exit.Usagef("--status: %w", err)
		}
		out.Statuses = append(out.Statuses, s)
	}
	switch {
	case c.MinReward != nil && math.IsNaN(*c.MinReward):
		return out, exit.Usagef("--min-reward: want a number")
	case c.WeightVersion != nil && *c.WeightVersion < 0 || c.MaxLag < 0:
		return out, exit.Usagef("--weight-version and --max-lag must not be negative")
	case c.MaxLag > 0 && c.WeightVersion == nil:
		return out, exit.Usagef("--max-lag needs --weight-version")
	}
	return out, nil
}

// leftOut describes the groups that were dropped, and how the answers of the others did not join.
func leftOut(a training.Account, as training.Shape) string {
	var all []string
	if len(a.Left) > 0 {
		all = append(all, fmt.Sprintf("%d of %d groups, left out: %s", a.Kept, a.Groups, byReason(a.Left)))
	}
	if len(a.Unmade) > 0 {
		all = append(all, unmade(as)+" not made: "+byReason(a.Unmade))
	}
	if a.Unpaid > 0 {
		all = append(all, fmt.Sprintf("%d episodes have no score %s, so nothing in them is trained on; name another in train.reward of the plan", a.Unpaid, a.Reward))
	}
	if n := a.Joins.Foreign; n > 0 {
		all = append(all, fmt.Sprintf("%d answers are not trained on, because another model gave them, they were repaired, or their program was started again", n))
	}
	if n := a.Joins.Drift; n > 0 {
		all = append(all, fmt.Sprintf("%d answers begin a new part, because the tokens of their prompt differ from what was sent and answered before", n))
	}
	if n := a.Joins.History; n > 0 {
		all = append(all, fmt.Sprintf("%d answers begin a new part, because their prompt does not continue the one before", n))
	}
	if as.Tokens() {
		for _, gap := range slices.Sorted(maps.Keys(a.Joins.Gaps)) {
			all = append(all, fmt.Sprintf("%d answers have %s%s", a.Joins.Gaps[gap], gap, remedy(gap)))
		}
	}
	return strings.Join(all, "; ")
}

// unmade names what is not made of a group.
func unmade(as training.Shape) string {
	switch as {
	case training.TRLDPO:
		return "pairs"
	case training.TRLGRPO:
		return "prompts"
	default:
		return "groups whose records were"
	}
}

// byReason lists counts with their reasons.
func byReason(counts map[string]int) string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprint(counts[why], " ", why))
	}
	return strings.Join(all, ", ")
}

// remedy says what a gap means, and what to do about it.
func remedy(gap llm.Gap) string {
	switch gap {
	case llm.NoTokenIDs:
		return "; play with tokens: true, and a server that returns them"
	case llm.NoPromptIDs:
		return " (prompt_token_ids), so they are in no sequence; use a server that returns them"
	case llm.NegativeIDs:
		return ", so they are in no sequence; check the server"
	default:
		return ", so their sequences have no logprobs; use a server that returns one for each token"
	}
}
