// Package trust decides whether the value of an environment variable may be sent to a host, and whether the code or the
// program that a plan names may run. It remembers what the user has allowed.
//
// What it promises: a preset's variable may go to that preset's own hosts over https, and any variable to this machine.
// Every other pair of variable and host, every file of code and every program needs the user's permission: by a flag, by an answer, or
// by a remembered answer. It is refused if nobody can be asked. A variable that is not set sends nothing, and needs no permission. The
// package never reads or prints the value of a variable.
//
// It sends nothing and reads no plans: packages app and cli pass it what a plan needs.
package trust

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/ask/provider"
)

// The types of grants.
const (
	// Variable is the value of an environment variable, sent to a host.
	Variable = "variable"
	// clientKeys are the keys of a gateway's clients, passed on to a host.
	clientKeys = "client-keys"
	// Code is a file of code that a plan names. It may do whatever the user may.
	Code = "code"
	// Program is a program that a plan starts: an agent, or what runs agents. It may do whatever the user may.
	Program = "program"
	// Command is a program that a plan runs, and whose output is sent to a host as the key.
	Command = "command"
)

// Grant is one thing that needs permission.
type Grant struct {
	// What is the type: Variable, clientKeys, Code, Program or Command.
	What string `json:"what"`
	// Name is the name of the variable, the path of the code, or the program with its arguments. Empty for clientKeys.
	Name string `json:"name,omitempty"`
	// Host is scheme, host and port, as Origin writes them. Empty for Code and Program.
	Host string `json:"host,omitempty"`
}

// Flag returns the grant as ParseFlag reads it: VAR=HOST.
func (g Grant) Flag() string {
	switch g.What {
	case clientKeys:
		return clientKeys + "=" + g.Host
	case Code, Program:
		return g.What + "=" + g.Name
	case Command:
		return Command + "=" + g.Name + "=" + g.Host
	}
	return g.Name + "=" + g.Host
}

// Subject describes what would be sent, or run.
func (g Grant) Subject() string {
	switch g.What {
	case clientKeys:
		return "the keys of the gateway's clients"
	case Code:
		return "the code of " + g.Name
	case Program:
		return "the program " + g.Name
	case Command:
		return "what the program " + g.Name + " prints"
	}
	return "the environment variable " + g.Name
}

// Plain reports whether the grant sends something to another machine without encryption.
func (g Grant) Plain() bool { return strings.HasPrefix(g.Host, "http://") && !Loopback(g.Host) }

// Reasons why a grant is allowed.
const (
	Preset     = "preset"     // the variable and the host belong to the same preset
	OnLoopback = "loopback"   // the host is this machine
	Given      = "given"      // by a flag of this command
	remembered = "remembered" // by an earlier answer
)

// free returns why a grant needs no permission, or "".
func (g Grant) free() string {
	if g.What == Code || g.What == Program || g.What == Command {
		return "" // it runs with the user's rights, wherever its output goes
	}
	for _, p := range provider.Presets() {
		host, err := Origin(p.BaseURL)
		own := g.What == clientKeys || p.KeyEnv == g.Name
		if err == nil && own && host == g.Host && strings.HasPrefix(host, "https://") {
			return Preset
		}
	}
	if Loopback(g.Host) {
		return OnLoopback
	}
	return ""
}

// Keys lists the grants that a provider needs to send its key: one for each host. Google's credentials need none: see
// provider.Credentials.
func Keys(p provider.Provider) []Grant {
	switch {
	case len(p.KeyCommand) > 0:
		return grants(p, Command, provider.CommandLine(p.KeyCommand))
	case p.KeyEnv == "":
		return nil
	}
	return grants(p, Variable, p.KeyEnv)
}

// Handed lists the grants that a provider without a key of its own needs to receive the keys of a gateway's clients.
func Handed(p provider.Provider) []Grant {
	if p.HasKey() || p.Signs() {
		return nil
	}
	return grants(p, clientKeys, "")
}

func grants(p provider.Provider, what, name string) []Grant {
	if p.InProcess() {
		return nil
	}
	var all []Grant
	for _, one := range p.Servers() {
		host, err := Origin(one.BaseURL)
		if err != nil {
			continue // provider.Validate refuses it before anything is sent
		}
		if g := (Grant{What: what, Name: name, Host: host}); !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all
}

// Origin returns the scheme, host and port of an address: in lower case, without a default port, and in ASCII, so that
// two that look alike stay different.
func Origin(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("is not an address: use https://host:port")
	}
	scheme, host, port := strings.ToLower(u.Scheme), hostOf(u), u.Port()
	if scheme != "http" && scheme != "https" || host == "" {
		return "", errors.New("is not an http or https address: use https://host:port")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[scheme] {
		host += ":" + port
	}
	return scheme + "://" + host, nil
}

// hostOf returns the host of an address in lower case, with \u escapes for everything except printable ASCII. It
// escapes first: letters of other alphabets can have ASCII ones as their lower case.
func hostOf(u *url.URL) string {
	quoted := fmt.Sprintf("%+q", u.Hostname())
	return strings.ToLower(quoted[1 : len(quoted)-1])
}

// Loopback reports whether an address is on this machine.
func Loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return hostOf(u) == "localhost" || ip != nil && ip.IsLoopback()
}

// ParseFlag reads VAR=HOST, code=FILE, program=PROGRAM AND ARGUMENTS, or command=PROGRAM AND ARGUMENTS=HOST. The default scheme of a host is https.
func ParseFlag(s string) (Grant, error) {
	name, host, ok := strings.Cut(s, "=")
	if name == Code && ok {
		path, err := filepath.Abs(host)
		return Grant{What: Code, Name: path}, err
	}
	if name == Program && ok && host != "" {
		return Grant{What: Program, Name: host}, nil
	}
	g := Grant{What: Variable, Name: name}
	if i := strings.LastIndexByte(host, '='); name == Command && i > 0 {
		g, host = Grant{What: Command, Name: host[:i]}, host[i+1:]
	} else if name == clientKeys {
		g = Grant{What: clientKeys}
	} else if !ok || !provider.IsVariable(name) {
		// It may be a key in the wrong place, so the error does not repeat it.
		return Grant{}, errors.New("write VARIABLE=HOST, as LAB_KEY=https://lab.example:8443")
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	var err error
	if g.Host, err = Origin(host); err != nil {
		return Grant{}, fmt.Errorf("%s: the host: %w", name, err)
	}
	return g, nil
}
