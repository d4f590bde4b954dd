package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"parley/internal/cli/exit"
	"parley/internal/serve/auth"
	"parley/internal/serve/viewer"
)

// viewCmd serves run files as web pages.
type viewCmd struct {
	Paths []string `arg:"" optional:"" placeholder:"FILE|DIR" help:"Run files, and folders with run files. Default: the current folder."`
	Addr  string   `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`

	auth.Names
	KeyEnv string `group:"clients" placeholder:"NAME" help:"Environment variable with the keys of the server, separated by commas. Default: a new key each time, in the address that is printed."`
}

// Run serves until a signal.
func (c *viewCmd) Run(ctx context.Context, s *State) error {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}
	keys := []string{rand.Text()}
	if c.KeyEnv != "" {
		var err error
		if keys, err = auth.KeysFrom(s.Env, "--key-env", c.KeyEnv); err != nil {
			return exit.AsUsage(err)
		}
	}
	flags := auth.Flags{Names: c.Names}
	access, err := flags.Access(c.Addr, "--key-env", true)
	if err != nil {
		return exit.AsUsage(err)
	}
	v, err := viewer.New(viewer.Config{Paths: c.Paths, KindOf: s.kindOf, Keys: keys, Access: access, Tool: Version()})
	if err != nil {
		return exit.AsUsage(err)
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	ln, err := flags.Listen(ctx, c.Addr, "--key-env", true)
	if err != nil {
		return exit.AsUsage(err)
	}
	address := fmt.Sprintf("http://%s/", ln.Addr())
	if c.KeyEnv == "" { // a key of the environment is never printed
		address += "#key=" + keys[0]
	}
	if _, err := fmt.Fprintf(s.Stdout, "listening on %s\n", address); err != nil {
		return errors.Join(err, ln.Close())
	}
	return v.Run(ctx, ln)
}
