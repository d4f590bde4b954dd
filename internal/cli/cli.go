// Package cli is the command line: a file per verb, and Main, which runs any of
// them.
//
// It promises that everything it takes from the outside comes in through State
// (arguments, environment, standard streams, signals) except the files named on
// the command line, so that a test runs the whole program in its own process.
// What a model wrote is never sent raw to a terminal. The value of a key is never
// printed.
//
// It is not for deciding how requests are served: that is package app's wiring of
// package dispatch.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/internal/app"
	"parley/internal/cli/manual"
	"parley/world"
)

// State is what the program takes from the outside.
type State struct {
	// Args are the arguments without the program's name.
	Args []string
	// Kinds are the kinds of worlds that can be played.
	Kinds []world.Kind
	// Env looks a variable of the environment up.
	Env func(name string) (value string, ok bool)

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal returns the width, now, of a stream that is a terminal, and 0 for any other.
	// Default: nothing is a terminal.
	Terminal func(stream any) int

	// ConfigDir is the folder of the user's settings. Default: nothing is remembered.
	ConfigDir string

	// Signals brings the signals to stop: the first drains, the second aborts.
	// Default: none come.
	Signals <-chan os.Signal

	// Exit ends the process where a second signal does not: work that never looks at its
	// context goes on. Default: nothing ends it.
	Exit func(code int)

	// err is Stderr with its progress line.
	err *stream
	// open stands between ask and the engine. Default: openApp.
	open func(cfg app.Config) (asker, error)
}

// grammar is every verb with its flags, but those that kinds bring.
type grammar struct {
	Help helpFlag `help:"Show this help, or that of a verb." short:"h"`

	Run        runCmd        `cmd:"" help:"Run a plan. If the run file exists, resume it."`
	Resume     resumeCmd     `cmd:"" help:"Resume a run."`
	Check      checkCmd      `cmd:"" help:"Validate a plan, and estimate its calls, tokens, cost and time."`
	Show       showCmd       `cmd:"" help:"Show a run: its episodes, what was said in one, a call of it."`
	Bench      benchCmd      `cmd:"" help:"Play a plan one by one, freely and in waves on the simulated provider, and time each beside its ideal."`
	Report     reportCmd     `cmd:"" help:"Summarize runs: tables with intervals, and a page with charts."`
	Compare    compareCmd    `cmd:"" help:"Say what differs between runs, agents, models or cells, and what the data cannot show yet."`
	Export     exportCmd     `cmd:"" help:"Write a run as tables for other programs: JSON lines, CSV or Parquet."`
	Fork       forkCmd       `cmd:"" help:"Continue an episode of a run from one of its turns, with another model, lineup or params."`
	Init       initCmd       `cmd:"" help:"Write a commented plan file of a kind to begin with."`
	New        newCmd        `cmd:"" help:"Write a Go module with a world of your own to begin with."`
	Worlds     worldsCmd     `cmd:"" help:"List the kinds of worlds that can be played."`
	Ask        askCmd        `cmd:"" help:"Ask a model one question, or every question of a JSONL file."`
	Probe      probeCmd      `cmd:"" help:"Find out what a model server can do, and print the provider entry for a plan."`
	Sim        simCmd        `cmd:"" help:"Serve the simulated provider over HTTP."`
	Gateway    gatewayCmd    `cmd:"" help:"Serve the APIs of OpenAI and Anthropic to other programs, and record what they ask."`
	Models     modelsCmd     `cmd:"" help:"List the known providers and the prices of their models."`
	Completion completionCmd `cmd:"" help:"Print completions for a shell: bash, zsh or fish."`
	Man        manCmd        `cmd:"" help:"Print the man page."`
	Version    versionCmd    `cmd:"" help:"Print the version, with the commit, Go's version and the platform."`
}

// helpFlag prints the help and ends the parse. Kong's own would end the process.
type helpFlag bool

var errHelp = errors.New("help was asked for")

// BeforeReset is kong's hook: it runs before anything is required or checked.
func (helpFlag) BeforeReset(k *kong.Context) error {
	if err := k.PrintUsage(false); err != nil {
		return err
	}
	return errHelp
}

// Main runs the program and returns its exit code.
func Main(ctx context.Context, s State) int {
	fill(&s)
	end := enforce(&s)
	defer end()
	err := run(ctx, &s)
	if err == nil || errors.Is(err, errHelp) {
		return ExitOK
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(s.Stderr, "parley: "+plainly(msg))
	}
	return exitCode(err)
}

// Verbs lists the verbs of the command line with these kinds.
func Verbs(kinds []world.Kind) []string {
	k, err := newParser(&State{Stdout: io.Discard, Stderr: io.Discard, Kinds: kinds}, &grammar{})
	if err != nil {
		return nil
	}
	var verbs []string
	for _, n := range k.Model.Children {
		verbs = append(verbs, n.Name)
	}
	return verbs
}

func run(ctx context.Context, s *State) error {
	parser, err := newParser(s, &grammar{})
	if err != nil {
		return fmt.Errorf("cli: %w", err)
	}
	args := s.Args
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as git and go have it
		args = append(slices.Clone(args[1:]), "--help")
	}
	k, err := parser.Parse(args)
	if err != nil {
		if errors.Is(err, errHelp) {
			return err
		}
		return misused(err, args, s.Kinds)
	}
	if v, ok := reflect.TypeAssert[world.Verb](k.Selected().Target.Addr()); ok {
		return runVerb(ctx, s, v)
	}
	k.BindTo(ctx, (*context.Context)(nil))
	return k.Run(s, k.Model)
}

func newParser(s *State, g *grammar) (*kong.Kong, error) {
	brought, err := commands(g, s.Kinds)
	if err != nil {
		return nil, err
	}
	k, err := parserOf(s, g, brought...)
	if err == nil {
		return k, nil
	}
	for _, c := range brought {
		if _, err := parserOf(s, &grammar{}, c); err != nil {
			return nil, c.refused(err)
		}
	}
	return nil, err
}

func parserOf(s *State, g *grammar, brought ...kindCommand) (*kong.Kong, error) {
	var options []kong.Option
	for _, c := range brought {
		options = append(options, c.option())
	}
	return kong.New(g, append(options,
		kong.Name("parley"),
		kong.Description("Play very many interactions of language models at once, and ask them very many questions."),
		kong.NoDefaultHelp(),
		kong.Vars{"faults": faultNames(), "shells": strings.Join(manual.Shells(), ",")},
		kong.ExplicitGroups([]kong.Group{
			{Key: "question", Title: "The question:"},
			{Key: "provider", Title: "The provider of --model:"},
			{Key: "care", Title: "Money, time and failures:"},
			{Key: "output", Title: "Output:"},
			{Key: "answers", Title: "Answers:"},
			{Key: "times", Title: "Times:"},
			{Key: "limits", Title: "Limits:"},
			{Key: "faults", Title: "Faults:"},
			{Key: "batches", Title: "Batches:"},
			{Key: "upstreams", Title: "Upstreams:"},
			{Key: "sessions", Title: "Sessions:"},
			{Key: "clients", Title: "Clients:"},
			{Key: "kinds", Title: "Commands of the kinds:"},
		}),
		kong.Writers(s.Stdout, s.Stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)...)
}

// fill puts defaults in place of what the caller left out, and the filter for
// hostile text in front of terminals.
func fill(s *State) {
	if s.Env == nil {
		s.Env = func(string) (string, bool) { return "", false }
	}
	if s.Terminal == nil {
		s.Terminal = func(any) int { return 0 }
	}
	if s.Stdin == nil {
		s.Stdin = eof{}
	}
	if s.open == nil {
		s.open = openApp
	}
	s.Stdout = newStream(s.Stdout, s)
	s.err = newStream(s.Stderr, s)
	s.Stderr = s.err
}

// eof is a standard input with nothing in it.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
