package envhttp

import (
	"context"
	"fmt"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/worlds/rollout/rules"
)

// list opens a session with the server of tools for an episode, and lists its tools. A server that cannot be reached is
// waited for, as environment servers are.
func (a *Actor) list(ctx context.Context, turn journal.Turn, l rules.Listing) (any, error) {
	p := a.find(turn, l.Try)
	if p == nil || a.tools == nil {
		return nil, wrong("episode %d has no environment, or no tools", turn.Episode)
	}
	began := time.Now()
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		var listed rules.Listed
		err := a.within(ctx, func(ctx context.Context) (err error) {
			if p.tools, err = a.tools.Open(ctx); err == nil {
				listed.Tools, err = p.tools.Tools(ctx)
			}
			return err
		})
		if err == nil {
			return listed, nil
		}
		e := *llm.AsError(err)
		if ctx.Err() != nil {
			return nil, llm.ContextError(ctx)
		}
		if !e.Kind.Retryable() || time.Since(began)+pause > a.patience {
			e.Uncertain = false // nothing was called: the run stops, and can be resumed
			e.Message = "params.tools.mcp: " + e.Message
			return nil, &e
		}
		select {
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		case <-time.After(pause):
		}
	}
}

// call calls tools, one after the other. If the result of one is unknown, the episode starts over.
func (a *Actor) call(ctx context.Context, turn journal.Turn, c rules.Calling) (any, error) {
	p := a.find(turn, c.Try)
	if p == nil || p.tools == nil {
		return nil, &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("envhttp: episode %d has no session with its tools", turn.Episode)}
	}
	var out rules.Called
	for _, one := range c.Calls {
		err := a.within(ctx, func(ctx context.Context) error {
			m, err := p.tools.Call(ctx, one)
			out.Results = append(out.Results, m)
			return err
		})
		if err != nil {
			return nil, uncertain(ctx, err)
		}
	}
	return out, nil
}

// within runs f within the time that a request may take.
func (a *Actor) within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeout, &llm.Error{
		Kind: llm.KindTimeout, Uncertain: true, Message: fmt.Sprintf("the server of tools did not answer within %s", a.timeout),
	})
	defer cancel()
	return f(ctx)
}

// endTime is how long a server of tools may take to end a session.
const endTime = 5 * time.Second

// end ends a session with the tools in the background.
func (a *Actor) end(ctx context.Context, s *MCPSession) {
	if s == nil {
		return
	}
	a.ending.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(endTime, a.timeout))
		defer cancel()
		s.End(ctx)
	})
}
