package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"parley/internal/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/provider"
	"parley/internal/trust"
	"parley/world/program"
)

// trustFlags allow keys to go where a file sends them.
type trustFlags struct{ program.TrustFlags }

// keyGate is what decides about keys in one command, and asks on the terminal.
type keyGate struct {
	*trust.Gate
	s *State
	// stop, when closed, ends a question. Default: only signals do.
	stop <-chan struct{}
}

// trustedName is the file, in the user's folder of settings, of what was allowed.
const trustedName = "trusted.jsonl"

// gate makes the gate of a command.
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
	k.Say = func(text string) { fmt.Fprintln(s.Stderr, "parley: "+exit.Plain(text)) }
	k.Command = func(add string) string { return commandOf(s.Args) + " " + shellWords(add) }
	if s.Terminal(s.Stdin) > 0 && s.err.Width() > 0 {
		k.Ask = k.ask
	}
	return k, nil
}

// commandOf is the command line that was given, as a shell reads it, without what may be a key.
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

// shellWords quotes the words of a text one by one.
func shellWords(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = terminal.ShellWord(w)
	}
	return strings.Join(words, " ")
}

// ask asks on the terminal. Anything but yes is no.
func (k *keyGate) ask(n trust.Need) (bool, error) {
	plain := ""
	if n.Plain() {
		plain = " over plain HTTP, where others on the network can read it"
	}
	fmt.Fprintf(k.s.Stderr, "%s sends %s to %s%s. Allow? [y/N] ", capital(n.Source), n.Subject(), n.Host, plain)
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

// readLine reads a line and nothing beyond it: what follows is for somebody else.
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

// capital writes the first letter of a text as a capital.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// typed allows everything that a provider needs which the user has described on the command
// line.
func (k *keyGate) typed(p provider.Provider) {
	k.Give(trust.Keys(p)...)
	k.Give(trust.Handed(p)...)
}

// destinationsOf says where a key goes, and why it may.
func destinationsOf(key app.Key) string {
	var all []string
	for _, d := range key.Sent {
		why := d.Allowed
		if why == "" {
			why = "run asks you first, unless --trust " + key.Env + "=" + d.Host
		}
		if d.Plain {
			why += ", unencrypted"
		}
		all = append(all, d.Host+" ("+why+")")
	}
	return strings.Join(all, ", ")
}
