package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/kit/text"
	"parley/internal/run/runfile"
)

// readRest calls do, which reads a run. If the file is damaged, readRest calls do again on a store that leaves
// out the damaged episodes, and names these on standard error. The error is then silent and only carries the
// exit code. do must print nothing before it has read everything.
func readRest(ctx context.Context, s *State, store *runfile.Store, do func() error) error {
	err := do()
	if errors.Is(err, runfile.ErrDamaged) && store.Lost() == nil {
		if err = store.Salvage(ctx); err == nil {
			err = do()
		}
	}
	if err != nil {
		return err
	}
	return leftOut(s, store)
}

// leftOut names the episodes that stores left out.
func leftOut(s *State, stores ...*runfile.Store) (err error) {
	for _, store := range stores {
		lost := store.Lost()
		if lost == nil {
			continue
		}
		what := "some entries that are of no episode"
		switch len(lost.Damaged) {
		case 0:
		case 1:
			what = "episode " + text.Ranges(lost.Damaged, 0)
		default:
			what = "episodes " + text.Ranges(lost.Damaged, 0)
		}
		fmt.Fprintf(s.Stderr, "parley: %s is damaged and was read without %s; parley check %s shows the damage\n", terminal.Safe(store.Path()), what, terminal.Safe(terminal.ShellWord(store.Path())))
		err = exit.Silent(exit.Failed)
	}
	return err
}

// isRunFile reports whether a file is a run file and not a plan, by its name or its first bytes.
func isRunFile(path string) bool {
	if filepath.Ext(path) == ".parley" {
		return true
	}
	f, err := files.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	const magic = "SQLite format 3\x00"
	var head [len(magic)]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == magic
}

// verified is the result of checking a run file.
type verified struct {
	File  string `json:"file"`
	Whole bool   `json:"whole"`
	// Unreadable is why nothing of the file can be read. Empty: the other episodes can be read.
	Unreadable string `json:"unreadable,omitempty"`
	runfile.Losses
}

// verify reads a whole run file and reports its damage.
func (c *checkCmd) verify(ctx context.Context, s *State) (err error) {
	ctx, end := untilSignal(ctx, s)
	defer end()
	v := verified{File: c.Plan}
	found, err := verifyFile(ctx, c.Plan)
	switch {
	case errors.Is(err, runfile.ErrDamaged):
		v.Unreadable = exit.Plain(err.Error())
		v.Damaged, v.Damage = []int{}, []runfile.Damage{{What: v.Unreadable}}
	case err != nil:
		return exit.AsUsage(playError(c.Plan, err))
	default:
		v.Losses, v.Whole = *found, len(found.Damage) == 0
		if fatal := found.Fatal(); fatal != nil {
			v.Whole, v.Unreadable = false, fatal.Error()
		}
	}
	if c.JSON {
		err = terminal.PrintJSON(s.Stdout, v)
	} else {
		_, err = fmt.Fprint(s.Stdout, terminal.Safe(v.text()))
	}
	if err == nil && !v.Whole {
		err = exit.Silent(exit.Failed)
	}
	return err
}

func verifyFile(ctx context.Context, path string) (found *runfile.Losses, err error) {
	store, err := runfile.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Verify(ctx)
}

func (v *verified) text() string {
	var b strings.Builder
	if v.Whole {
		fmt.Fprintf(&b, "%s is whole: %s entries, %s episodes, %s texts match their checksums.\n", v.File, terminal.Number(v.Entries), terminal.Number(v.Episodes), terminal.Number(v.Texts))
		return b.String()
	}
	fmt.Fprintf(&b, "%s is damaged", v.File)
	if n := len(v.Damaged); n > 0 {
		fmt.Fprintf(&b, ": %s of %s episodes cannot be read whole: %s", terminal.Number(n), terminal.Number(v.Episodes), text.Ranges(v.Damaged, 0))
	}
	b.WriteString(".\n\n")
	byEpisode := slices.SortedStableFunc(slices.Values(v.Damage), func(a, b runfile.Damage) int { return rank(a) - rank(b) })
	const maxShown = 50
	for i, d := range byEpisode {
		if i == maxShown {
			fmt.Fprintf(&b, "and %s more: --json lists them all\n", terminal.Number(len(byEpisode)-maxShown))
			break
		}
		if d.Episode != nil {
			fmt.Fprintf(&b, "episode %d: ", *d.Episode)
		}
		fmt.Fprintln(&b, d.What)
	}
	if v.Unreadable != "" {
		b.WriteString("\nNothing of the file can be read, and parley refuses it. Keep it, and put back a copy if you have one.\n")
		return b.String()
	}
	b.WriteString("\nKeep the file, and put back a copy if you have one. parley show, report, compare and export leave out the damaged\n" +
		"episodes and read the others; parley resume refuses the file.\n")
	return b.String()
}

// rank sorts the damage of the run before that of episodes, and episodes by number.
func rank(d runfile.Damage) int {
	if d.Episode == nil {
		return -1
	}
	return *d.Episode
}
