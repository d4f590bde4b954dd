package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/planfile"
	"parley/world"
)

// worldsCmd lists the kinds of worlds.
type worldsCmd struct {
	Kind string `arg:"" optional:"" help:"Describe this kind." placeholder:"KIND"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// knownKind describes a kind.
type knownKind struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Doc     string `json:"doc"`
	// Seats are the seats with default params; empty if the params have to be set first.
	Seats    []string         `json:"seats"`
	Params   []planfile.Param `json:"params"`
	Bots     []string         `json:"bots"`
	External bool             `json:"external"`
}

// Run prints the list, or the details of one kind.
func (c *worldsCmd) Run(s *State) error {
	all := s.Kinds
	if c.Kind != "" {
		k, err := planfile.FindKind(all, c.Kind)
		if err != nil {
			return exit.AsUsage(err)
		}
		return c.one(s, describeKind(k))
	}
	known := make([]knownKind, len(all))
	for i, k := range all {
		known[i] = describeKind(k)
	}
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, known)
	}
	t := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	for _, k := range known {
		fmt.Fprintf(t, "%s\t%s\n", k.Name, k.Doc)
	}
	fmt.Fprintf(t, "\nnext:  parley worlds %s   its seats and params\n       parley init %s     write a plan to begin with\n", known[0].Name, known[0].Name)
	return t.Flush()
}

func describeKind(k world.Kind) knownKind {
	known := knownKind{
		Name: k.Name, Version: k.Version, Doc: k.Doc, Params: planfile.Params(k), External: k.External(),
		Seats: []string{}, Bots: append([]string{}, slices.Sorted(maps.Keys(k.Bots()))...),
	}
	if seats, err := k.Seats(k.Defaults()); err == nil {
		known.Seats = seats
	}
	return known
}

// one prints the details of a kind.
func (c *worldsCmd) one(s *State, k knownKind) error {
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, k)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (version %d): %s\n\n", k.Name, k.Version, k.Doc)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "seats\t%s\n", listOr(k.Seats, "by params"))
	fmt.Fprintf(t, "bots\t%s\n", listOr(k.Bots, "none"))
	if k.External {
		fmt.Fprintf(t, "resume\tan episode that did not end starts again, since its external state is lost\n")
	}
	_ = t.Flush() // a strings.Builder takes everything
	if len(k.Params) > 0 {
		fmt.Fprintf(&b, "\nparams\n")
	}
	for _, p := range k.Params {
		fmt.Fprintf(&b, "  %s: %s", p.Name, p.Holds)
		if p.Default != nil {
			fmt.Fprintf(&b, ". Default: %s", readable(p.Default))
		}
		if p.Doc != "" {
			fmt.Fprintf(&b, "\n      %s", p.Doc)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "\nnext:  parley init %s   write a plan with all of it, commented\n", k.Name)
	_, err := io.WriteString(s.Stdout, b.String())
	return err
}

// readable formats a default as a plan file writes it.
func readable(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil && list != nil {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return string(raw)
}

func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}
