package trust

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Need is a grant that is needed, and by whom.
type Need struct {
	Grant
	// Source describes what needs it: the plan x.yaml.
	Source string
	// Place is where it is asked for: x.yaml:5:12: providers.lab.key_env.
	Place string
}

// Gate decides for one process. The zero Gate and a nil one allow only what needs no permission. It is safe for
// concurrent use once its fields are set.
type Gate struct {
	// Store remembers the user's answers. Default: none.
	Store *Store
	// Env looks up a variable, to see whether it is set. Default: os.LookupEnv.
	Env func(name string) (string, bool)
	// Ask asks the user. Default: nobody can be asked.
	Ask func(Need) (bool, error)
	// Say shows a message to the user. Default: nothing is shown.
	Say func(text string)
	// Command returns the command with values of --trust added. Default: these alone.
	Command func(values []string) string

	mu      sync.Mutex
	given   []Grant // by flags, or by an answer in this process
	warned  []Grant
	damaged bool // the user knows that the store is damaged
}

// Give allows grants for this process.
func (g *Gate) Give(grants ...Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.given = append(g.given, grants...)
}

// Silence makes the gate ask nobody from now on.
func (g *Gate) Silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Ask = nil
}

// Why returns why a grant is allowed, such as Preset, or "" if it is not.
func (g *Gate) Why(want Grant) string {
	if why := want.free(); why != "" || g == nil {
		return why
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why(want)
}

func (g *Gate) why(want Grant) string {
	if why := want.free(); why != "" {
		return why
	}
	if slices.Contains(g.given, want) {
		return Given
	}
	known, err := g.Store.Load()
	if err != nil && !g.damaged {
		g.damaged = true
		g.say(err.Error())
	}
	if slices.Contains(known, want) {
		return remembered
	}
	return ""
}

func (g *Gate) say(text string) {
	if g.Say != nil {
		g.Say(text)
	}
}

// set reports whether there is something to send for a grant.
func (g *Gate) set(want Grant) bool {
	if want.What != Variable {
		return true
	}
	env := os.LookupEnv
	if g != nil && g.Env != nil {
		env = g.Env
	}
	value, ok := env(want.Name)
	return ok && strings.TrimSpace(value) != ""
}

// Allow returns *RefusedErrors unless everything that is needed is already allowed. It asks nobody.
func (g *Gate) Allow(needs ...Need) error {
	var left []Need
	for _, n := range needs {
		if g.set(n.Grant) && g.Why(n.Grant) == "" {
			left = append(left, n)
		}
	}
	return g.refuse(left)
}

// Check is Allow for the time before anything is sent: it asks the user for what is not allowed, and remembers the
// answers.
func (g *Gate) Check(needs ...Need) error {
	if g == nil {
		return g.Allow(needs...)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var left []Need
	for _, n := range needs {
		if !g.set(n.Grant) {
			continue
		}
		switch why := g.why(n.Grant); {
		case why == Given:
			g.warn(n.Grant)
			continue
		case why != "":
			continue
		case g.Ask == nil:
			left = append(left, n)
			continue
		}
		yes, err := g.Ask(n)
		if err != nil {
			return err
		}
		if !yes {
			return g.refuse([]Need{n})
		}
		g.given, g.warned = append(g.given, n.Grant), append(g.warned, n.Grant)
		if err := g.Store.Add(n.Grant); err != nil {
			g.say(fmt.Sprintf("you will be asked again: %v", err))
		}
	}
	return g.refuse(left)
}

// warn warns once that something is sent unencrypted, if the user was not asked.
func (g *Gate) warn(want Grant) {
	if want.Plain() && !slices.Contains(g.warned, want) {
		g.warned = append(g.warned, want)
		g.say(fmt.Sprintf("%s is sent to %s over plain HTTP: others on the network can read it", want.Subject(), want.Host))
	}
}

func (g *Gate) refuse(left []Need) error {
	if len(left) == 0 {
		return nil
	}
	var errs []error
	var flags []string
	for _, n := range left {
		errs = append(errs, &RefusedError{Need: n})
		flags = append(flags, n.Flag())
	}
	last := &RefusedError{Need: left[len(left)-1]}
	errs[len(errs)-1] = last
	last.remedy = " If you trust it: "
	if len(errs) > 1 {
		last.remedy = " If you trust all of these: "
	}
	if g != nil && g.Command != nil {
		last.remedy += g.Command(flags)
	} else {
		last.remedy += "--trust " + strings.Join(flags, " --trust ")
	}
	return errors.Join(errs...)
}

// RefusedError is a need that the user has not allowed. The last of several says how to allow all of them.
type RefusedError struct {
	Need
	remedy string
}

// Error says what would have been sent where, and how to allow it.
func (r *RefusedError) Error() string {
	plain := ""
	if r.Plain() {
		plain = ", unencrypted"
	}
	switch r.What {
	case Code:
		return fmt.Sprintf("%s: would run %s, which you have not allowed; nothing was run. It could do whatever you can.%s", r.Place, r.Subject(), r.remedy)
	case Program:
		return fmt.Sprintf("%s: would start %s, which you have not allowed; nothing was started. It could do whatever you can.%s", r.Place, r.Subject(), r.remedy)
	case Command:
		return fmt.Sprintf("%s: would run the program %s and send what it prints to %s%s, which you have not allowed; nothing was run.%s", r.Place, r.Name, r.Host, plain, r.remedy)
	default:
		return fmt.Sprintf("%s: would send %s to %s%s, which you have not allowed; nothing was sent.%s", r.Place, r.Subject(), r.Host, plain, r.remedy)
	}
}
