package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// A name of an environment becomes part of an address.
	envName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	seatName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$`)
)

// checked returns params as what they must be, or what is wrong with them.
func checked(params any) (*Params, error) {
	p, ok := params.(*Params)
	if !ok || p == nil {
		return nil, fmt.Errorf("rollout: params are %T, want *rollout.Params", params)
	}
	for _, check := range []func() error{p.checkEnv, p.checkServers, p.checkSizes, p.checkSeats, p.checkPool, p.checkExperience} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// wrong is an error about a param.
func wrong(param, format string, args ...any) error {
	return fmt.Errorf("rollout: params.%s: %s", param, fmt.Sprintf(format, args...))
}

func (p *Params) checkEnv() error {
	switch {
	case !envName.MatchString(p.Env):
		return wrong("env", "%.40q: want a name of letters, digits and _ . -", p.Env)
	case !isObject(p.EnvParams):
		return wrong("env_params", "want an object of the environment's own keys")
	case p.Protocol != V1 && p.Protocol != ProtocolOpenEnv:
		return wrong("protocol", "%.40q is none: use %s, %s", p.Protocol, V1, ProtocolOpenEnv)
	case p.Protocol == ProtocolOpenEnv && len(p.Servers) == 0:
		return wrong("servers", "protocol openenv needs an address, such as ws://127.0.0.1:8000")
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return json.Valid(raw) && raw[0] == '{'
}

func (p *Params) checkServers() error {
	schemes := []string{"http://", "https://"}
	if p.Protocol == ProtocolOpenEnv {
		schemes = append(schemes, "ws://", "wss://")
	}
	for i, s := range p.Servers {
		param := fmt.Sprintf("servers[%d]", i)
		if !slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(s, scheme) && len(s) > len(scheme) }) {
			return wrong(param, "%.80q: want an address that begins with %s", s, strings.Join(schemes, ", "))
		}
		if strings.ContainsAny(s, "@?# \t\n") {
			return wrong(param, "want a plain address: a user, a key or a query would be kept in the run file")
		}
		if slices.Contains(p.Servers[:i], s) {
			return wrong(param, "%s is listed twice", s)
		}
	}
	return nil
}

func (p *Params) checkSizes() error {
	for _, c := range []struct {
		param            string
		value, low, high int
	}{
		{"max_steps", p.MaxSteps, 1, 100_000},
		{"message_cut", p.MessageCut, -1, 100_000},
		{"group", p.Group, 0, 10_000},
		{"retries", p.Retries, 0, 100},
		{"pool.per_server", p.Pool.PerServer, 1, 100_000},
		{"pool.startup", p.Pool.Startup, 1, 10_000},
		{"pool.warm", p.Pool.Warm, 0, 10_000},
	} {
		if c.value < c.low || c.value > c.high {
			return wrong(c.param, "%d: want %d to %d", c.value, c.low, c.high)
		}
	}
	return nil
}

func (p *Params) checkSeats() error {
	if len(p.Seats) == 0 || len(p.Seats) > 1000 {
		return wrong("seats", "%d: want 1 to 1000", len(p.Seats))
	}
	for i, seat := range p.Seats {
		if !seatName.MatchString(seat) {
			return wrong(fmt.Sprintf("seats[%d]", i), "%.40q: want a name of letters, digits and _ . : -", seat)
		}
		if slices.Contains(p.Seats[:i], seat) {
			return wrong(fmt.Sprintf("seats[%d]", i), "%s is listed twice", seat)
		}
	}
	return nil
}

func (p *Params) checkPool() error {
	for _, c := range []struct {
		param     string
		value     float64
		low, high float64
	}{
		{"pool.timeout", p.Pool.Timeout, 0.001, 86_400},
		{"pool.patience", p.Pool.Patience, 0, 86_400},
		{"pool.jitter", p.Pool.Jitter, 0, 3_600},
	} {
		if !(c.value >= c.low && c.value <= c.high) {
			return wrong(c.param, "%v: want %v to %v seconds", c.value, c.low, c.high)
		}
	}
	return nil
}
