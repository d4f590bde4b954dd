package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Flags are the flags of a command that serves: who may use the server.
type Flags struct {
	NameFlags
	// Keyed means that the command has no flag --open: its server always needs a key.
	Keyed bool `kong:"-"`
	Open  bool `group:"clients" help:"Serve other machines without a key: everyone who can connect can use it."`
}

// NameFlags are the flags of a server for its names, and for the web pages that may use it.
type NameFlags struct {
	AllowHost   []string `group:"clients" sep:"none" placeholder:"NAME[:PORT]" help:"Another host name that clients may use for this server, such as that of a proxy. Repeatable. Default: its address, and the names of this machine."`
	AllowOrigin []string `group:"clients" sep:"none" placeholder:"ORIGIN" help:"A web origin that may send requests, such as http://NAME:PORT. Repeatable. Default: none."`
}

// Access checks the flags. A server without keys serves only this machine, unless --open is given. keyFlag
// names the flag for keys; it is empty if the server has none.
func (f *Flags) Access(addr, keyFlag string, keys bool) (Access, error) {
	a := Access{Hosts: f.AllowHost, Origins: f.AllowOrigin}
	if err := a.Check(); err != nil {
		return a, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return a, fmt.Errorf("--addr: %w", err)
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) && !keys && !f.Open {
		return a, f.exposed(addr, keyFlag)
	}
	if ip == nil && host != "" && host != "localhost" {
		a.Hosts = append([]string{host}, a.Hosts...) // the name of its own address
	}
	return a, nil
}

// Listen listens at addr. Only then it is known what the name stands for, so Listen checks again that a server
// without keys serves only this machine.
func (f *Flags) Listen(ctx context.Context, addr, keyFlag string, keys bool) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if at, ok := ln.Addr().(*net.TCPAddr); (!ok || !at.IP.IsLoopback()) && !keys && !f.Open {
		return nil, errors.Join(f.exposed(ln.Addr().String(), keyFlag), ln.Close())
	}
	return ln, nil
}

func (f *Flags) exposed(addr, keyFlag string) error {
	if keyFlag == "" {
		return fmt.Errorf("--addr %s would serve other machines, and this server has no keys: say --open if only trusted programs can reach it", addr)
	}
	if f.Keyed {
		return fmt.Errorf("--addr %s would serve other machines: set a key for them with %s", addr, keyFlag)
	}
	return fmt.Errorf("--addr %s would serve other machines without a key: set one with %s, or say --open", addr, keyFlag)
}

// KeysFrom reads a server's own keys from the environment variable that a flag names.
func KeysFrom(lookup func(string) (string, bool), flag, env string) (keys []string, err error) {
	if env == "" {
		return nil, nil
	}
	v, _ := lookup(env)
	for k := range strings.SplitSeq(v, ",") {
		if k = strings.TrimSpace(k); k != "" {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no environment variable of that name is set", flag)
	}
	return keys, nil
}
