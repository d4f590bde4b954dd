// Package parley plays very many interactions of language models at once.
package parley

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"parley/internal/cli"
	"parley/world"
)

// Main is the whole command line with these kinds of worlds. It takes its arguments from os.Args and ends the process.
func Main(kinds ...world.Kind) {
	// Both signals are needed, one to drain and one to abort, so none may be lost.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	settings, err := os.UserConfigDir()
	if err != nil {
		settings = "" // without a home nothing is remembered
	}
	os.Exit(cli.Main(context.Background(), cli.State{
		Args:      os.Args[1:],
		Kinds:     kinds,
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
