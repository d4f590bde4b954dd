package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/planfile"
)

// trustFlags allow a plan or run file to send keys to hosts, and to run code.
type trustFlags struct {
	Trust []string `sep:"none" placeholder:"VAR=HOST" help:"Allow this environment variable to be sent to this host without asking, such as LAB_KEY=https://lab.example:8443; code=FILE, allow the code of this file or folder to run; or program=PROGRAM, allow a program to be started. Repeatable."`
}

// keyGate decides about the keys of one command, and asks on the terminal.
type keyGate struct {
	*trust.Gate
	s *State
	// stop, when closed, ends a question. Default: only a signal ends it.
	stop <-chan struct{}
}

// trustedName is the file in the settings folder that records what the user allowed.
const trustedName = "trusted.jsonl"

// gate returns the key gate of a command.
func (f *trustFlags) gate(s *State) (*keyGate, error) {
	k := &keyGate{Gate: &trust.Gate{Env: s.Env}, s: s}
	for _, flag := range f.Trust {
		g, err := trust.ParseFlag(flag)
		if err != nil {
			return nil, exit.Usagef("--trust: %w", err)
		}
		k.Give(g)
	}
	if s.ConfigDir != "" {
		k.Store = trust.NewStore(filepath.Join(s.ConfigDir, "parley", trustedName))
	}
	k.Say = func(text string) { fmt.Fprintln(s.Stderr, "parley: "+text) }
	k.Command = func(values []string) string {
		args := slices.Clone(s.Args)
		for _, v := range values {
			args = append(args, "--trust", v)
		}
		return commandOf(args)
	}
	if s.Terminal(s.Stdin) > 0 && s.err.Width() > 0 {
		k.Ask = k.ask
	}
	s.keys = k
	return k, nil
}

// listen listens for signals until end is called. The first one closes the gate, and ends a question.
func (k *keyGate) listen(ctx context.Context) (_ context.Context, g *exit.Gate, end func()) {
	g = exit.NewGate()
	k.stop = g.Shut
	ctx, end = listen(ctx, k.s, g)
	return ctx, g, end
}

// commandOf returns the command line as a shell reads it, without arguments that may be keys.
func commandOf(args []string) string {
	words := []string{"parley"}
	for _, a := range args {
		if len(provider.Secrets(a)) > 0 {
			words = append(words, "…")
			continue
		}
		words = append(words, terminal.ShellWord(a))
	}
	return strings.Join(words, " ")
}

// ask asks on the terminal. Every answer except yes means no.
func (k *keyGate) ask(n trust.Need) (bool, error) {
	plain := ""
	if n.Plain() {
		plain = " over plain HTTP, where others on the network can read it"
	}
	does := fmt.Sprintf("sends %s to %s%s", n.Subject(), n.Host, plain)
	if n.What == trust.Code {
		does = fmt.Sprintf("runs %s, which can do whatever you can", terminal.Quoted(n.Subject()))
	}
	if n.What == trust.Program {
		does = fmt.Sprintf("starts %s, which can do whatever you can", terminal.Quoted(n.Subject()))
	}
	if n.What == trust.Command {
		does = fmt.Sprintf("runs the program %s and sends what it prints to %s%s", n.Name, n.Host, plain)
	}
	fmt.Fprint(k.s.Stderr, terminal.Broken(fmt.Sprintf("%s %s. Allow? [y/N] ", capital(n.Source), does), k.s.err.Width()))
	answer := make(chan string, 1)
	go func() { answer <- readLine(k.s.Stdin) }()
	select {
	case a := <-answer:
		a = strings.ToLower(strings.TrimSpace(a))
		return a == "y" || a == "yes", nil
	case <-k.s.Signals:
	case <-k.stop:
	}
	fmt.Fprintln(k.s.Stderr)
	return false, &exit.Error{Code: exit.Interrupted, Err: errors.New("stopped by a signal")}
}

// readLine reads one line and nothing beyond it: the rest of the input is for other readers.
func readLine(r io.Reader) string {
	var line []byte
	one := make([]byte, 1)
	for len(line) < 100 {
		n, err := r.Read(one)
		if n > 0 && one[0] == '\n' {
			break
		}
		line = append(line, one[:n]...)
		if err != nil {
			break
		}
	}
	return string(line)
}

// capital makes the first letter of a text upper case.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// allowTyped allows the keys of a provider that the user described on the command line.
func (k *keyGate) allowTyped(p provider.Provider) {
	k.Give(trust.Keys(p)...)
	k.Give(trust.Handed(p)...)
}

// destinationsOf says where a key goes, and why that is allowed.
func destinationsOf(key app.Key) string {
	var all []string
	for _, d := range key.Sent {
		why := cmp.Or(d.Allowed, "run asks you first, unless --trust "+terminal.ShellWord(d.Flag))
		if d.Plain {
			why += ", unencrypted"
		}
		all = append(all, d.Host+" ("+why+")")
	}
	return strings.Join(all, ", ")
}

// reachFlags allow a plan to name files outside its folder.
type reachFlags struct {
	AllowFiles []string `sep:"none" placeholder:"DIR" help:"Allow the plan, and the files that it names, to use files in this folder. Without it, all files must be in the plan's folder. Repeatable."`
}

func (f *reachFlags) reach() planfile.Reach { return planfile.Reach{Folders: f.AllowFiles} }

// recorded is the reach of a plan that a run file recorded. Its paths are relative to the current folder, so
// that folder is within reach too.
func (f *reachFlags) recorded(more ...string) *planfile.Reach {
	return &planfile.Reach{Folders: slices.Concat(f.AllowFiles, []string{"."}, more)}
}

// runFile returns the run file of a plan: the one that the user named, or the plan, or a file beside the plan.
// The last must not be a link to somewhere else.
func (f *reachFlags) runFile(plan *planfile.Plan, planFile, out string) (string, error) {
	switch {
	case out != "":
		return out, nil
	case plan.Out != "":
		return plan.Out, nil
	}
	file := strings.TrimSuffix(planFile, filepath.Ext(planFile)) + ".parley"
	if err := f.reach().Check(planFile, file); err != nil {
		return "", exit.Usagef("%w", err)
	}
	return file, nil
}
