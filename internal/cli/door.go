package cli

import (
	"fmt"
	"net"
	"strings"
)

// door is who may ask a server: clients with one of its own keys, or anybody on this machine.
type door struct {
	flag string // that names the variable with the keys
	env  string // the variable; empty: there are no keys
	addr string // where it listens
	open bool   // other machines are served without a key too
}

// keys reads the server's own keys. Without any it serves this machine only, unless told.
func (d door) keys(s *State) (keys []string, err error) {
	if d.env == "" {
		local, err := onlyHere(d.addr)
		if err == nil && !local && !d.open {
			err = fmt.Errorf("--addr %s would serve other machines without a key: set one with %s, or say --open", d.addr, d.flag)
		}
		return nil, err
	}
	v, _ := s.Env(d.env)
	for k := range strings.SplitSeq(v, ",") {
		if k = strings.TrimSpace(k); k != "" {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no environment variable of that name is set", d.flag)
	}
	return keys, nil
}

// onlyHere says whether an address is for this machine alone.
func onlyHere(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("--addr: %w", err)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
