package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/auth"
	"parley/internal/kit/files"
	"parley/internal/kit/text"
	"parley/internal/run/runfile"
	"parley/internal/serve/viewer"
)

// viewCmd serves run files as web pages.
type viewCmd struct {
	Paths []string `arg:"" optional:"" placeholder:"FILE|DIR" help:"Run files, and folders with run files. Default: the current folder."`
	Addr  string   `placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: 127.0.0.1:0."`
	Open  bool     `help:"Open the pages in the browser."`

	Export   string `placeholder:"DIR" help:"Write the pages into this folder instead, as a site that needs no server. Open its index.html."`
	Episodes *int   `name:"export-episodes" placeholder:"N" help:"With --export: how many episodes of each run get pages. The lists have all of them. Default: 500."`

	auth.NameFlags
	KeyEnv        string         `group:"clients" placeholder:"NAME" help:"Environment variable with the keys of the server, separated by commas. Default: a new key each time, in the address that is printed."`
	ClientTimeout *time.Duration `group:"clients" name:"client-timeout" placeholder:"DURATION" help:"Maximum time for a client to send a request. Default: 1m."`
}

// viewMemory is the memory that a viewer may use before the garbage collector works harder.
const viewMemory = 100 << 20

// viewAddr is where a viewer listens if --addr is not given.
const viewAddr = "127.0.0.1:0"

// Run serves until a signal.
func (c *viewCmd) Run(ctx context.Context, s *State) (err error) {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}
	if err := c.check(); err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	if c.Export != "" {
		return c.export(ctx, s)
	}
	defer limitMemory(s, viewMemory)()
	v, ln, address, err := c.listen(ctx, s)
	if err != nil {
		return c.explain(err)
	}
	if _, err := fmt.Fprintf(s.Stdout, "listening on %s\n", address); err != nil {
		return errors.Join(err, ln.Close())
	}
	if c.Open {
		defer browse(ctx, s, address, opener)()
	}
	return v.Run(ctx, ln)
}

// explain says what to do about paths that cannot be shown: one may be missing, or be a plan instead of a run file.
func (c *viewCmd) explain(err error) error {
	for _, path := range c.Paths {
		if errors.Is(err, runfile.ErrForeign) && isPlan(path) {
			return playError(path, err)
		}
		if _, bad := os.Stat(path); errors.Is(bad, fs.ErrNotExist) {
			return exit.Usagef("%s: there is no such file or folder%s", path, text.SuggestPath(path))
		}
	}
	return exit.AsUsage(err)
}

// exportEpisodes is how many episodes of a run get pages in a folder.
const exportEpisodes = 500

// check refuses flags that have no effect together, and values that cannot be used.
func (c *viewCmd) check() error {
	switch {
	case c.Episodes != nil && c.Export == "":
		return exit.Usagef("--export-episodes: only --export writes pages into a folder; name the folder with --export, or leave this out")
	case c.Episodes != nil && *c.Episodes < 0:
		return exit.Usagef("--export-episodes %d: want 0 or more episodes", *c.Episodes)
	case c.Export != "" && c.Open:
		return exit.Usagef("--open: with --export nothing is served; leave out --open, and open %s", filepath.Join(c.Export, "index.html"))
	case c.Export != "":
		return unserved(c.serving())
	case c.ClientTimeout != nil && *c.ClientTimeout <= 0:
		return exit.Usagef("--client-timeout %s: want a time above 0, such as 1m", *c.ClientTimeout)
	}
	return nil
}

// serving returns the flags that were given and that only a server can use.
func (c *viewCmd) serving() (flags []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--addr", c.Addr != ""}, {"--allow-host", len(c.AllowHost) > 0}, {"--allow-origin", len(c.AllowOrigin) > 0},
		{"--key-env", c.KeyEnv != ""}, {"--client-timeout", c.ClientTimeout != nil},
	} {
		if f.given {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// unserved refuses flags of a server.
func unserved(flags []string) error {
	switch len(flags) {
	case 0:
		return nil
	case 1:
		return exit.Usagef("%s: with --export nothing is served, so this flag has no effect; leave it out, or leave out --export", flags[0])
	default:
		return exit.Usagef("%s: with --export nothing is served, so these flags have no effect; leave them out, or leave out --export", strings.Join(flags, ", "))
	}
}

// export writes the pages into a folder.
func (c *viewCmd) export(ctx context.Context, s *State) error {
	v, err := viewer.New(viewer.Config{Paths: c.Paths, KindOf: s.kindOf, Tool: Version()})
	if err != nil {
		return c.explain(err)
	}
	episodes := exportEpisodes
	if c.Episodes != nil {
		episodes = *c.Episodes
	}
	done, err := v.Export(ctx, c.Export, episodes)
	if errors.Is(err, viewer.ErrFolder) {
		return exit.Usagef("--export: %w", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %s files, %s\n", filepath.Join(c.Export, "index.html"), terminal.Number(done.Files), files.Size(done.Bytes))
	return err
}

// listen returns a viewer, its listener, and the address for people, with the key.
func (c *viewCmd) listen(ctx context.Context, s *State) (*viewer.Viewer, net.Listener, string, error) {
	keys := []string{rand.Text()}
	if c.KeyEnv != "" {
		var err error
		if keys, err = auth.KeysFrom(s.Env, "--key-env", c.KeyEnv); err != nil {
			return nil, nil, "", err
		}
	}
	addr := cmp.Or(c.Addr, viewAddr)
	flags := auth.Flags{NameFlags: c.NameFlags, Keyed: true}
	access, err := flags.Access(addr, "--key-env", c.KeyEnv != "")
	if err != nil {
		return nil, nil, "", err
	}
	cfg := viewer.Config{Paths: c.Paths, KindOf: s.kindOf, Keys: keys, Access: access, Tool: Version()}
	if c.ClientTimeout != nil {
		cfg.ClientTimeout = *c.ClientTimeout
	}
	v, err := viewer.New(cfg)
	if err != nil {
		return nil, nil, "", err
	}
	ln, err := flags.Listen(ctx, addr, "--key-env", c.KeyEnv != "")
	if err != nil {
		return nil, nil, "", err
	}
	address := fmt.Sprintf("http://%s/", ln.Addr())
	if c.KeyEnv == "" { // a key of the environment is never printed
		address += "#key=" + keys[0]
	}
	return v, ln, address, nil
}

// browse opens an address in the browser, until end is called: the program that opens it may stay. The arguments of a
// process can be seen by everyone, and the address has the key, so the browser gets a file that leads there.
func browse(ctx context.Context, s *State, address string, open func(context.Context, string) *exec.Cmd) (end func()) {
	failed := func(err error) { s.tell("the browser could not be opened: " + err.Error()) }
	f, err := os.CreateTemp("", "parley-*.html")
	if err != nil {
		failed(err)
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	end = func() {
		stop()
		wg.Wait()
		_ = os.Remove(f.Name())
	}
	_, err = fmt.Fprintf(f, `<meta http-equiv="refresh" content="0;url=%s">`, html.EscapeString(address))
	if err = errors.Join(err, f.Close()); err != nil {
		failed(err)
		return end
	}
	cmd := open(ctx, f.Name())
	wg.Go(func() {
		if err := cmd.Run(); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
	return end
}

// opener is the system's program that opens a file in the browser.
func opener(ctx context.Context, file string) *exec.Cmd {
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	return exec.CommandContext(ctx, name, args...) //nolint:gosec // a program of the system, and our file
}

// serveView shows a run file as web pages until end is called.
func serveView(ctx context.Context, s *State, file string) (end func()) {
	c := viewCmd{Paths: []string{file}}
	v, ln, address, err := c.listen(ctx, s)
	if err != nil {
		s.tell("--view: " + err.Error())
		return func() {}
	}
	fmt.Fprintf(s.err, "parley: the run is shown at %s\n", address)
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := v.Run(ctx, ln); err != nil {
			s.tell("--view: " + err.Error())
		}
	})
	return func() {
		stop()
		wg.Wait()
	}
}
