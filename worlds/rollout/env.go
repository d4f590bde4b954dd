package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"parley/internal/kit/auth"
	"parley/world/program"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
)

// envCommand lists or serves the environments that come with parley.
type envCommand struct {
	Names    []string      `arg:"" optional:"" name:"name" placeholder:"NAME" help:"The environments to serve, or all. Without a name, they are listed."`
	Addr     string        `default:"127.0.0.1:36663" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`
	Sessions int           `default:"100000" placeholder:"N" help:"Maximum number of sessions at a time. Default: ${default}."`
	Idle     time.Duration `default:"1h" placeholder:"DURATION" help:"Close a session after this time without a request. Default: ${default}."`
	JSON     bool          `name:"json" help:"Print the list as JSON."`

	auth.Flags
	ClientTimeout time.Duration `group:"clients" name:"client-timeout" default:"1m" placeholder:"DURATION" help:"Maximum time for a client to send a request. Default: ${default}."`
}

// Run serves until the first signal, or lists.
func (c *envCommand) Run(_ context.Context, p *program.Program) error {
	all := env.Standard()
	if len(c.Names) == 0 {
		return c.list(p, all)
	}
	kinds, err := c.kinds(all)
	if err != nil {
		return program.UsageError{Err: err}
	}
	if c.ClientTimeout <= 0 {
		return program.UsageError{Err: fmt.Errorf("--client-timeout %s: want a time above 0, such as 1m", c.ClientTimeout)}
	}
	if c.Sessions < 1 || c.Idle <= 0 {
		return program.UsageError{Err: errors.New("--sessions and --idle must be above 0")}
	}
	allowed, err := c.Access(c.Addr, "", false)
	if err != nil {
		return program.UsageError{Err: err}
	}
	ln, err := c.Listen(p.Stop, c.Addr, "", false) //nolint:contextcheck // Stop ends with ctx, or before
	if err != nil {
		return program.UsageError{Err: err}
	}
	if _, err := fmt.Fprintf(p.Stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = ln.Close() // the address is not known
		return fmt.Errorf("standard output: %w", err)
	}
	return envhttp.NewEnvServer(envhttp.EnvServerConfig{Kinds: kinds, Sessions: c.Sessions, Idle: c.Idle, Hosts: allowed.Hosts, Origins: allowed.Origins, ClientTimeout: c.ClientTimeout}).Serve(p.Stop, ln) //nolint:contextcheck // Stop ends with ctx, or before
}

// kinds returns the environments with these names.
func (c *envCommand) kinds(all []env.Kind) (kinds []env.Kind, err error) {
	for _, name := range c.Names {
		if name == "all" {
			kinds = append(kinds, all...)
			continue
		}
		k, err := env.Find(all, name)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// knownEnv is an environment as it is shown.
type knownEnv struct {
	Name  string   `json:"name"`
	Doc   string   `json:"doc"`
	Seats []string `json:"seats"`
}

func (c *envCommand) list(p *program.Program, all []env.Kind) error {
	var known []knownEnv
	for _, k := range all {
		e := knownEnv{k.Name, k.Doc, k.Seats}
		if len(e.Seats) == 0 {
			e.Seats = []string{"agent"}
		}
		known = append(known, e)
	}
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(known)
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, e := range known {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Name, strings.Join(e.Seats, ", "), e.Doc)
	}
	first := known[0].Name
	fmt.Fprintf(t, "\nnext:  parley env %s   serve it at http://%s, for any program that speaks the v1 protocol\n       parley init rollout     write a plan that plays one, without a server\n", first, c.Addr)
	return t.Flush()
}
