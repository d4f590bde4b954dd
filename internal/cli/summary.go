package cli

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/journal"
)

// PrintSummary prints the result of a run: scores, figures, failures, and the next commands. resumable reports
// whether parley resume can continue it.
func (v *runView) PrintSummary(w io.Writer, sum *app.Summary, resumable bool) {
	v.printAgents(w, sum)
	printFigures(w, sum)
	printTrouble(w, sum)
	if says := v.Says(); len(says) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(says, ",\n"))
	}
	v.printCommands(w, sum, resumable)
}

// printAgents prints the scores by agent.
func (v *runView) printAgents(w io.Writer, sum *app.Summary) {
	if len(sum.Agents) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "agent\tscore\tepisodes\tindependent\tmean\t95% interval\t")
	for _, sc := range sum.Agents {
		interval := "not known"
		if !math.IsInf(sc.Interval.Half(), 0) {
			interval = fmt.Sprintf("%.3f to %.3f", sc.Interval.Low, sc.Interval.High)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f\t%s\t\n", sc.Agent, sc.Score, terminal.Number(sc.Episodes), terminal.Number(sc.N), sc.Mean, interval)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
}

// printFigures prints how far the run got, its calls, cost and time.
func printFigures(w io.Writer, sum *app.Summary) {
	fmt.Fprintf(w, "%s: %s of %s", sum.State, terminal.Number(sum.Episodes.Complete), terminal.Several(sum.Episodes.Total, "episode", "episodes"))
	if sum.Episodes.Failed > 0 {
		fmt.Fprintf(w, ", %s failed", terminal.Number(sum.Episodes.Failed))
	}
	fmt.Fprintf(w, "; %s", terminal.Several(sum.Calls.Total, "call", "calls"))
	if sum.Calls.Earlier > 0 {
		fmt.Fprintf(w, ", %s of them new", terminal.Number(sum.Calls.Total-sum.Calls.Earlier))
	}
	fmt.Fprint(w, showBeside(sum.Acts.Total, sum.Bots))
	spent := "unpriced"
	if sum.Cost != nil {
		spent = sum.Cost.String()
	}
	if sum.Saved > 0 {
		spent += ", prompt caches saved " + sum.Saved.String()
	}
	fmt.Fprintf(w, "; %s; %v%s\n", spent, (time.Duration(sum.Wall*1e9) * time.Nanosecond).Round(10*time.Millisecond), terminal.UnpricedNote(sum.Unpriced))
}

// printTrouble prints what failed, what is open, why the run ended, and what to do.
func printTrouble(w io.Writer, sum *app.Summary) {
	const maxShown = 5
	for i, text := range sum.Unreached {
		if i == maxShown {
			fmt.Fprintf(w, "not reached: %d more cells\n", len(sum.Unreached)-maxShown)
			break
		}
		fmt.Fprintln(w, "not reached: "+terminal.Safe(text))
	}
	if sum.CopiesNote != "" {
		fmt.Fprintln(w, terminal.Safe(sum.CopiesNote))
	}
	if f := sum.Fault; f != nil {
		fmt.Fprintf(w, "failed most often (%s): %s\n", terminal.Number(f.Episodes), terminal.Safe(f.String()))
	}
	for _, line := range failureLines(sum.Failures, sum.Calls.Total, sum.Acts.Total) {
		fmt.Fprintln(w, line)
	}
	if sum.Batches > 0 {
		fmt.Fprintf(w, "%s with the providers: they continue, and are collected when the run is resumed\n", terminal.Several(sum.Batches, "batch is", "batches are"))
	}
	if sum.Risked > 0 {
		fmt.Fprintf(w, "calls that were cut off in flight may have cost up to %v more, which the budget counts\n", sum.Risked)
	}
	if why := sum.Reason.String(); why != "" {
		fmt.Fprintf(w, "why: %s\n", exit.Plain(why))
	}
	if f := sum.Cause; f != nil {
		fmt.Fprintf(w, "what to do: %s\n", terminal.Quoted(f.Remedy))
	}
	if f := sum.AttemptFailure; f != nil {
		fmt.Fprintf(w, "attempts that failed: %s: %s\nwhat to do: %s\n", terminal.Safe(f.String()), terminal.Quoted(f.Example), terminal.Quoted(f.Remedy))
	}
}

// printCommands prints the commands that continue or show the run.
func (v *runView) printCommands(w io.Writer, sum *app.Summary, resumable bool) {
	fmt.Fprintf(w, "\nrun file: %s\n", sum.File)
	switch {
	case !resumable:
		fmt.Fprintf(w, "to run the plan in a new run file:\n    %s\n", v.Again)
	case sum.State != journal.Complete:
		more := ""
		if sum.Reason.Kind == journal.ByBudget {
			more = " --budget USD"
		}
		for _, t := range v.Trust { // --trust is valid for one command
			more += " --trust " + terminal.ShellWord(t)
		}
		fmt.Fprintf(w, "to resume it:\n    parley resume %s%s\n", terminal.ShellWord(sum.File), more)
	case sum.Episodes.Failed > 0:
		fmt.Fprintf(w, "the run is complete: episodes that failed are not played again in this file; to play the plan again:\n    %s\n", v.Again)
	}
	if sum.Calls.Total > 0 || sum.Episodes.Complete+sum.Episodes.Failed > 0 {
		fmt.Fprintf(w, "to read what was said:\n    parley show %s\n", terminal.ShellWord(sum.File))
	}
	if v.files {
		folder := strings.TrimSuffix(sum.File, filepath.Ext(sum.File))
		fmt.Fprintf(w, "to write the results as files:\n    parley export %s --format folder --out %s\n", terminal.ShellWord(sum.File), terminal.ShellWord(folder))
	}
}
