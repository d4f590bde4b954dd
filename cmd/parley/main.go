// Command parley asks language models very many questions at once. Everything it
// does is in package cli; this is only the door to the outside.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"parley/internal/cli"
	"parley/worlds"
)

func main() {
	// Both signals are needed, one to drain and one to abort, so none may be lost.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	settings, err := os.UserConfigDir()
	if err != nil {
		settings = "" // without a home nothing is remembered
	}
	os.Exit(cli.Main(context.Background(), cli.State{
		Args:      os.Args[1:],
		Kinds:     worlds.Standard(),
		Env:       os.LookupEnv,
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		Terminal:  width,
		ConfigDir: settings,
		Signals:   signals,
		Exit:      os.Exit,
	}))
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
