package dispatch

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"parley/internal/provider"
	"parley/internal/replica"
	"parley/llm"
)

// Outage is that a provider cannot be reached, or is back.
type Outage struct {
	Provider, URL string
	Since         time.Time
	Why           string
	Limit         time.Duration // how long it is waited for, from Since on
	Back          bool          // it can be reached again
}

// Text says how things stand at now.
func (o Outage) Text(now time.Time) string {
	took := now.Sub(o.Since).Round(time.Second)
	if o.Back {
		return fmt.Sprintf("%s can be reached again after %v", o.Provider, took)
	}
	text := o.Provider + " is unreachable"
	if took > 0 {
		text += fmt.Sprintf(" for %v", took)
	}
	text += ": " + o.Why
	if o.URL != "" {
		text += " at " + o.URL
	}
	if took < o.Limit {
		text += fmt.Sprintf("; waits up to %v", o.Limit)
	}
	return text
}

// outage returns how things stand, and false where calls need not wait.
func (r *reach) outage() (Outage, bool) {
	if !r.trouble.Load() {
		return Outage{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state(), r.down
}

// state describes the outage. r.mu is held.
func (r *reach) state() Outage {
	o := Outage{Provider: r.name, URL: r.url, Since: r.since, Limit: r.limit}
	if r.cause != nil {
		o.Why = said(r.cause)
	}
	return o
}

// said is what an error says, for a line about its provider.
func said(e *llm.Error) string {
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "connection refused"
	case e.Status != 0:
		return fmt.Sprintf("%d %s", e.Status, e.Message)
	default:
		return e.Message
	}
}

// codeUnreachable is of a call that was not made, since its provider stayed away.
const codeUnreachable = "unreachable"

// failure is what a call fails with that waited too long. r.mu is held.
func (r *reach) failure(now time.Time) *llm.Error {
	return &llm.Error{
		Kind: llm.KindTransport, Code: codeUnreachable, Status: r.cause.Status, Final: true, Unreachable: true, Err: r.cause,
		Message: r.state().Text(now) + "; start the server or correct its base_url, then try again; " +
			"--unreachable, or retry: {unreachable: 10m} in a plan, says how long to wait",
	}
}

// addresses is where a provider is.
func addresses(p provider.Provider) string {
	if n := len(p.BaseURLs); n > 1 {
		return fmt.Sprintf("%s and %d more", p.BaseURLs[0], n-1)
	}
	return p.Servers()[0].BaseURL
}

// aliveOf returns how to find out, without a call, whether a server of a lane is there; nil
// where only calls can tell.
func aliveOf(in Lane) func(ctx context.Context) error {
	var servers []replica.Pinger
	for _, m := range in.Replicas {
		if m.Server != nil {
			servers = append(servers, m.Server)
		}
	}
	if s, ok := in.Model.(replica.Pinger); ok && len(in.Replicas) == 0 {
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil
	}
	return func(ctx context.Context) (err error) {
		for _, s := range servers {
			if err = s.Alive(ctx); err == nil {
				return nil
			}
		}
		return err
	}
}
