// Package cli is the command line: Main, and one or two files for each command, named after it.
//
// What several commands share is in files of its own:
//   - cli.go parses the command line, explain.go says what is wrong with it, and signals.go stops commands.
//   - command.go runs the commands that kinds bring, and code.go starts worlds, environments and scorers in other languages.
//   - provider_flags.go, trust.go and metrics.go have flags: of a model's provider, of what a plan may do, and for Prometheus.
//   - runs.go opens and reads run files, and run_view.go shows a run while it is played.
//
// All input comes through State (arguments, environment, standard streams, signals), except the files named on
// the command line. So a test can run the whole program in its own process. Text from a model is never sent raw
// to a terminal. The value of a key is never printed.
//
// It does not decide how requests are served: package app configures package dispatch for that.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/settings"
	"parley/internal/cli/app"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/program"
)

// State is the program's environment.
type State struct {
	// Args are the arguments without the program's name.
	Args []string
	// Kinds are the kinds of worlds that plans can use.
	Kinds []world.Kind
	// Env looks up an environment variable.
	Env func(name string) (value string, ok bool)

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal returns the current width of a stream that is a terminal, and 0 for other streams. Default: no stream
	// is a terminal.
	Terminal func(stream any) int

	// ConfigDir is the folder of the user's settings. Default: nothing is stored.
	ConfigDir string

	// Signals receives the signals to stop: the first drains, the second aborts.
	Signals <-chan os.Signal

	// Exit ends the process if a command ignores the second signal. Default: such a
	// command continues.
	Exit func(code int)

	// Supervisor is that of app.Config.
	Supervisor []string

	// err is Stderr with its progress line.
	err *terminal.Stream
	// open opens the app that ask uses. Default: openApp.
	open func(cfg app.Config) (bulk.Asker, error)
	// verbs maps the commands of kinds to their kinds.
	verbs map[program.Verb]world.Kind
	// pools are the workers that play kinds in other languages, and conn is one that another program brought.
	pools []io.Closer
	conn  net.Conn
	// scores means that the command scores a run.
	scores bool
	// codes are the environments in other languages. codeFolders are where the code of the command was found.
	codes       *codeSet
	codeFolders []string
	// keys decides which keys and which code the command may use.
	keys *keyGate
	// log gets what tell says while a run is played. Nil: there is none.
	log *slog.Logger
}

// grammar has every command with its flags, except those of the kinds.
type grammar struct {
	Help helpFlag `help:"Show this help." short:"h"`
	profileFlags
	Own ownVerbs `kong:"-"`
}

// ownVerbs has the commands. Each is called as its field, in lower case.
type ownVerbs struct {
	Run   runCmd   `group:"play" help:"Run a plan, or resume a run."`
	Ctl   ctlCmd   `group:"play" help:"Pause, drain, stop or wait for a run, or set its budget."`
	Sit   sitCmd   `group:"play" help:"Take a seat of a run that is played: answer its questions."`
	Check checkCmd `group:"play" help:"Validate a plan, and estimate its calls, cost and time."`
	Fork  forkCmd  `group:"play" help:"Continue an episode from one of its turns, with changes."`
	Score scoreCmd `group:"play" help:"Score episodes by a rubric or in Python, or add labels."`

	Trainer trainerCmd `group:"play" help:"Play a plan, and serve its training data over HTTP."`

	View    viewCmd    `group:"read" help:"Show runs as web pages, while they are played and afterwards."`
	Show    showCmd    `group:"read" help:"Show the episodes of a run, a transcript, or a call."`
	Report  reportCmd  `group:"read" help:"Summarize runs in tables, or on a page with charts."`
	Compare compareCmd `group:"read" help:"Compare runs, agents, models or cells."`
	Export  exportCmd  `group:"read" help:"Write a run as JSON lines, CSV or Parquet."`

	Trajectories trajectoriesCmd `group:"read" help:"Write the training data of a run."`

	Worker  workerCmd  `group:"cluster" help:"Play episodes of runs on other machines."`
	Hub     hubCmd     `group:"cluster" help:"Connect runs with workers on other machines."`
	Cluster clusterCmd `group:"cluster" help:"Show the runs and workers of a hub, or drain a worker."`

	Init   initCmd   `group:"begin" help:"Write a plan file, or a world of your own in Go, to start from."`
	Worlds worldsCmd `group:"begin" help:"List the kinds of worlds, or describe one."`

	Ask     askCmd     `group:"models" help:"Ask a model a question, or every question in a file."`
	Models  modelsCmd  `group:"models" help:"List providers and prices of models."`
	Sim     simCmd     `group:"models" help:"Serve the simulated provider over HTTP."`
	Gateway gatewayCmd `group:"models" help:"Serve OpenAI's, Anthropic's and Gemini's APIs, and record calls."`
}

// options returns the commands for a parser: all, or only the one with this name.
func (v *ownVerbs) options(only string) (all []kong.Option) {
	for f, value := range reflect.ValueOf(v).Elem().Fields() {
		if name := strings.ToLower(f.Name); only == "" || only == name {
			all = append(all, kong.DynamicCommand(name, f.Tag.Get("help"), f.Tag.Get("group"), value.Addr().Interface()))
		}
	}
	return all
}

// helpFlag prints the help and ends the parse. Kong's own flag would end the process.
type helpFlag bool

var errHelp = errors.New("help was asked for")

// BeforeReset is a hook of kong: it runs before any flag is required or checked.
func (helpFlag) BeforeReset(k *kong.Context) error {
	if err := k.PrintUsage(false); err != nil {
		return err
	}
	return errHelp
}

// printHelp prints the overview of the program, or kong's help of a command.
func printHelp(o kong.HelpOptions, k *kong.Context) error {
	if k.Selected() != nil {
		return kong.DefaultHelpPrinter(o, k)
	}
	_, err := io.WriteString(k.Stdout, overview(k.Model))
	return err
}

// Main runs the program and returns its exit code.
func Main(ctx context.Context, s State) int {
	setDefaults(&s)
	var measured profiles
	if quit := s.Exit; quit != nil {
		s.Exit = func(code int) {
			_ = measured.end() // standard error may be blocked
			quit(code)
		}
	}
	end := enforceSignals(&s)
	defer end()
	err := parseAndRun(ctx, &s, &measured)
	code := printError(&s, err)
	if printError(&s, measured.end()) != exit.OK {
		code = cmp.Or(code, exit.Broken)
	}
	return code
}

// printError prints an error and returns its exit code.
func printError(s *State, err error) int {
	if err == nil || errors.Is(err, errHelp) {
		return exit.OK
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(s.Stderr, "parley: "+msg)
	}
	// An error in a file that is named in a plan is a text, without its cause.
	if msg := err.Error(); strings.Contains(msg, syscall.EMFILE.Error()) && !strings.Contains(msg, "ulimit") {
		fmt.Fprintln(s.Stderr, "the system allows no more open files: raise the limit in this shell, as with ulimit -n 4096, and try again")
	}
	return exit.CodeOf(err)
}

// Verbs returns the names of all commands, those of kinds included.
func Verbs(kinds []world.Kind) []string {
	s := &State{Kinds: kinds}
	setDefaults(s)
	k, err := newParser(s, &grammar{}, "")
	if err != nil {
		return nil
	}
	var verbs []string
	for _, n := range k.Model.Children {
		verbs = append(verbs, n.Name)
	}
	return verbs
}

func parseAndRun(ctx context.Context, s *State, measured *profiles) error {
	if err := checkKinds(s.Kinds); err != nil {
		return err
	}
	args := s.Args
	if len(args) == 0 {
		return printNext(ctx, s.Stdout)
	}
	if args[0] == "help" { // as in git and go
		args = append(slices.Clone(args[1:]), "--help")
	}
	var g grammar
	parser, err := newParser(s, &g, args[0])
	if err != nil {
		return err
	}
	if text, ok, err := aboutProgram(parser.Model, args); ok || err != nil {
		if err == nil {
			_, err = io.WriteString(s.Stdout, text)
		}
		return err
	}
	k, err := parser.Parse(args)
	if err != nil {
		if errors.Is(err, errHelp) {
			return err
		}
		return usageProblem(err, args, s.Kinds)
	}
	if err := measured.start(g.profileFlags); err != nil {
		return err
	}
	if v, ok := reflect.TypeAssert[program.Verb](k.Selected().Target.Addr()); ok {
		return runVerb(ctx, s, v)
	}
	defer s.closeCode()
	k.BindTo(ctx, (*context.Context)(nil))
	return k.Run(s, k.Model)
}

// aboutProgram answers what is asked of the program without a command.
func aboutProgram(app *kong.Application, args []string) (text string, ok bool, err error) {
	switch args[0] {
	case "--version":
		text, err = versionText(args[1:])
	case "--completion":
		text, err = completionHook(args[1:])
	case "--complete":
		for _, offer := range completions(app, args[1:]) {
			text += offer + "\n"
		}
		text = exhibit.Visible(text)
	default:
		return "", false, nil
	}
	return text, err == nil, err
}

// readText reads an argument as it is. Kong's own reader replaces bytes that are not UTF-8, which names of files may have.
func readText(c *kong.DecodeContext, to reflect.Value) error {
	token, err := c.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, ok := token.Value.(string)
	if !ok {
		text = fmt.Sprint(token.Value)
	}
	to.SetString(text)
	return nil
}

// newParser makes a parser of command lines. Kong looks at every flag of every command that it gets, which takes longer than many
// commands do: if only is one of ours, the parser knows no other.
func newParser(s *State, g *grammar, only string) (*kong.Kong, error) {
	kinds := kindCommands(s)
	verbs := g.Own.options(only)
	if only == "" || len(verbs) == 0 {
		verbs = append(g.Own.options(""), kinds...)
	}
	return kong.New(g, append(verbs,
		kong.Name("parley"),
		kong.Description("Run very many interactions of language models at once, and analyze them."),
		kong.NoDefaultHelp(),
		kong.KindMapper(reflect.String, kong.MapperFunc(readText)),
		kong.Vars{"faults": faultNames()},
		kong.Vars(settings.Vars()),
		kong.Help(printHelp),
		kong.ExplicitGroups([]kong.Group{
			{Key: "play", Title: "Play:"},
			{Key: "cluster", Title: "Several machines:"},
			{Key: "read", Title: "Read:"},
			{Key: "begin", Title: "Begin:"},
			{Key: "models", Title: "Models:"},
			{Key: "bench", Title: "Measuring the time:"},
			{Key: "module", Title: "A world of your own:"},
			{Key: "question", Title: "The question:"},
			{Key: "provider", Title: "The provider of --model:"},
			{Key: "care", Title: "Cost, time and failures:"},
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

// setDefaults sets defaults for the fields that the caller left empty. It wraps the streams, so that hostile text
// cannot control a terminal.
func setDefaults(s *State) {
	if s.Env == nil {
		s.Env = func(string) (string, bool) { return "", false }
	}
	if s.Terminal == nil {
		s.Terminal = func(any) int { return 0 }
	}
	if s.Stdin == nil {
		s.Stdin = emptyInput{}
	}
	if s.open == nil {
		s.open = openApp
	}
	s.Stdout = terminal.NewStream(s.Stdout, s.Env, s.Terminal)
	s.err = terminal.NewStream(s.Stderr, s.Env, s.Terminal)
	s.Stderr = s.err
}

// emptyInput is an empty standard input.
type emptyInput struct{}

func (emptyInput) Read([]byte) (int, error) { return 0, io.EOF }

// openApp opens the app that c describes. Its errors are usage errors.
func openApp(c app.Config) (bulk.Asker, error) {
	a, err := app.Open(c)
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	return a, nil
}

// onEvent returns a function that prints what happens between calls and providers: warnings about a model always; that a provider or
// one of its servers cannot be reached, or is back, only if all is set.
func (s *State) onEvent(all bool) func(dispatch.Event) {
	return func(e dispatch.Event) {
		switch {
		case e.Notice != nil:
			s.say("warning: "+e.Notice.Text, 400)
		case e.Outage != nil && all:
			s.say(e.Outage.Text(time.Now()), 400)
		case e.Rest != nil && all:
			s.say(restText(e.Rest), 400)
		}
	}
}

// restText says that one of a model's servers failed or is back.
func restText(r *replica.Rest) string {
	if r.Why == nil {
		return "the server " + r.Name + " is back"
	}
	others := ""
	if r.Others > 0 {
		others = ", and others take its calls"
	}
	return "the server " + r.Name + " rests" + others + ": " + r.Why.Error()
}

// say prints a line, with the beginning of a text that may be hostile.
func (s *State) say(text string, limit int) {
	fmt.Fprintln(s.err, terminal.Broken("parley: "+terminal.Cut(terminal.Safe(terminal.OneLine(text)), limit), s.err.Width()))
}

// maxMessage is how much of a message for the operator is printed.
const maxMessage = 800

// tell prints a message for the operator of a server, and writes it to the events of a run. It may contain text from clients.
func (s *State) tell(text string) {
	s.say(text, maxMessage)
	if s.log != nil {
		s.log.Warn("notice", "text", text)
	}
}

// tellError writes an error on standard error.
func (s *State) tellError(err error) { s.tell(err.Error()) }
