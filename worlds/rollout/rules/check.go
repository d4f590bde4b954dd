package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/world"
)

var seatName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$`)

// check checks all params and names those that are wrong.
func (p *Params) check() error {
	c := &world.ParamErrors{Kind: "rollout"}
	p.checkEnv(c)
	p.checkServers(c)
	p.checkSizes(c)
	p.checkSeats(c)
	p.checkExperience(c)
	p.checkTools(c)
	p.Refill.Check(c)
	p.Judge.Check(c, p.Seats, seatName.MatchString)
	return c.Err()
}

// wrong returns an error about a param.
func wrong(param, format string, args ...any) error {
	return fmt.Errorf("rollout: params.%s: %s", param, fmt.Sprintf(format, args...))
}

func (p *Params) checkEnv(c *world.ParamErrors) {
	if err := checkName(p.Env); err != nil {
		c.Addf("env", "%v", err)
	}
	if !IsObject(p.EnvParams) {
		c.Addf("env_params", "want an object of the environment's own keys")
	}
	c.OneOf("protocol", p.Protocol, []string{V1, ProtocolOpenEnv})
	if p.Protocol == ProtocolOpenEnv && len(p.Servers) == 0 {
		c.Addf("servers", "protocol openenv needs an address, such as ws://127.0.0.1:8000")
	}
}

func (p *Params) checkServers(c *world.ParamErrors) {
	schemes := []string{"http://", "https://"}
	if p.Protocol == ProtocolOpenEnv {
		schemes = append(schemes, "ws://", "wss://")
	}
	for i, s := range p.Servers {
		param := fmt.Sprintf("servers[%d]", i)
		switch {
		case IsCode(p.Env):
			c.Addf("servers", "%.80q runs in processes of this run: leave servers out", p.Env)
		case !slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(s, scheme) && len(s) > len(scheme) }):
			c.Addf(param, "%.80q: want an address that begins with %s", s, strings.Join(schemes, ", "))
		case strings.ContainsAny(s, "@?# \t\n"):
			c.Addf(param, "want a plain address: a user, a key or a query would be kept in the run file")
		case slices.Contains(p.Servers[:i], s):
			c.Addf(param, "%s is listed twice", s)
		}
	}
}

func (p *Params) checkSizes(c *world.ParamErrors) {
	c.IntRange("max_steps", p.MaxSteps, 1, 100_000)
	c.IntRange("message_cut", p.MessageCut, -1, 100_000)
	c.IntRange("group", p.Group, 0, 10_000)
	c.IntRange("retries", p.Retries, 0, 100)
	c.IntRange("max_staleness", p.MaxStaleness, -1, 1_000_000)
	c.OneOf("stale", p.Stale, []string{StaleDrop, StaleRestart})
	c.IntRange("pool.per_server", p.Pool.PerServer, 0, 100_000)
	c.IntRange("pool.startup", p.Pool.Startup, 0, 10_000)
	c.IntRange("pool.warm", p.Pool.Warm, 0, 10_000)
	c.Between("pool.timeout", p.Pool.Timeout, 0.001, 86_400)
	c.Between("pool.patience", p.Pool.Patience, 0, 86_400)
	c.Between("pool.jitter", p.Pool.Jitter, 0, 3_600)
}

func (p *Params) checkSeats(c *world.ParamErrors) {
	if len(p.Seats) == 0 || len(p.Seats) > 1000 {
		c.Addf("seats", "%d: want 1 to 1000", len(p.Seats))
		return
	}
	for i, seat := range p.Seats {
		switch at := fmt.Sprintf("seats[%d]", i); {
		case !seatName.MatchString(seat):
			c.Addf(at, "%.40q: want a name of letters, digits and _ . : -", seat)
		case slices.Contains(p.Seats[:i], seat):
			c.Addf(at, "%s is listed twice", seat)
		}
	}
}
