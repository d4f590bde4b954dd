// Package parley plays very many interactions of language models at once, and asks models many things: with limits,
// retries, a cache, a budget that holds, and run files that survive a crash. It is the program parley as a library.
//
// There are four entry points:
//
//   - Main is the whole command line, with your own kinds of worlds.
//   - Play runs a plan, from a plan file or made by For, with any provider's models or your own.
//   - Open reads a run file: episodes, transcripts, calls, and scores with their intervals.
//   - NewAsker asks models directly, without a world.
//
// A world and its kind are written with package world. Package llm has the words for asking: Request, Response, Model.
// Names of models are written provider/model, such as openai/gpt-5-mini or sim/small, which is built in and needs no key.
//
// An environment variable that holds a key is sent to the hosts of its preset and to this machine, and to no other host
// unless you allow it in Trust. Text that models wrote is returned unchanged: treat it as hostile.
package parley

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"parley/internal/cli"
	"parley/internal/kit/process"
	"parley/internal/run/program"
	"parley/world"
	"parley/worlds"
)

// Main is the whole command line with these kinds of worlds and those that come with Parley. It takes its arguments from os.Args and ends
// the process.
func Main(kinds ...world.Kind) {
	if len(os.Args) > 2 && os.Args[1] == superviseVerb {
		os.Exit(process.Supervise(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == program.RelayVerb {
		os.Exit(process.Relay(os.Args[2:]))
	}
	runtime.MemProfileRate = 0 // samples of allocations cost time; --memprofile turns them on
	cli.TuneCollector(os.LookupEnv)
	// Both signals are needed, one to drain and one to abort, so none may be lost.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var stdin io.Reader = os.Stdin
	if _, owned := os.LookupEnv("PARLEY_OWNED"); owned {
		_ = os.Unsetenv("PARLEY_OWNED") // it does not apply to what this process starts
		stdin = strings.NewReader("")
		go stopWithOwner(signals)
	}
	settings, err := os.UserConfigDir()
	if err != nil {
		settings = "" // without a home folder, nothing is remembered
	}
	var supervisor []string
	if self, err := os.Executable(); err == nil && runtime.GOOS == "linux" {
		supervisor = []string{self, superviseVerb}
	}
	code := cli.Main(context.Background(), cli.State{
		Args:      os.Args[1:],
		Kinds:     withStandard(kinds),
		Env:       os.LookupEnv,
		Stdin:     stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		Terminal:  width,
		ConfigDir: settings,
		Signals:   signals,
		Exit:      os.Exit,

		Supervisor: supervisor,
	})
	os.Exit(code)
}

// withStandard adds the kinds that come with Parley to kinds, which replace those of the same name.
func withStandard(kinds []world.Kind) []world.Kind {
	all := slices.Clone(kinds)
	for _, k := range worlds.Standard() {
		if !slices.ContainsFunc(kinds, func(own world.Kind) bool { return own.Name == k.Name }) {
			all = append(all, k)
		}
	}
	return all
}

// superviseVerb makes a process of this program the supervisor of an agent that is a program. It is no command for users.
const superviseVerb = "supervise-program"

// stopWithOwner waits for the end of standard input, which the program that started this one holds open, and stops as at
// a signal. The Python package uses it, so that its end or Ctrl-C in a notebook drains a run on every system.
func stopWithOwner(signals chan<- os.Signal) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	signals <- os.Interrupt
}

// width returns the width of a stream that is a terminal, and 0 for any other.
func width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}
