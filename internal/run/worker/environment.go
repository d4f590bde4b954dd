package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"parley/journal"
	"parley/world"
)

// Sessions is code that keeps state by session: an environment. A session stays with its worker. If that ends, another
// one gets the operations of the session again, unless the class says that it must not.
type Sessions struct {
	standIn
	pool *Pool

	mu   sync.Mutex
	open map[string]*exchange
}

var _ world.Code = (*Sessions)(nil)

// OpenEnvironment starts a worker with the class of an environment.
func OpenEnvironment(c Config) (*Sessions, error) {
	p, err := open(c, roleEnvironment)
	if err != nil {
		return nil, err
	}
	return &Sessions{standIn: standIn{p}, pool: p, open: map[string]*exchange{}}, nil
}

// Workers returns how many workers there are at most.
func (s *Sessions) Workers() int { return s.pool.Max }

// Code describes the code that the workers play.
func (s *Sessions) Code() journal.Code { return s.pool.Code() }

// Do carries out an operation in a session, or in none.
func (s *Sessions) Do(ctx context.Context, session, op string, args any) (json.RawMessage, error) {
	if session == "" {
		a, err := s.pool.ask(ctx, &request{Op: op, Args: args})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.pool.Name, err)
		}
		return a.result()
	}
	s.mu.Lock()
	e := s.open[session]
	if e == nil {
		e = &exchange{pool: s.pool, key: s.pool.name("s")}
		s.open[session] = e
	}
	s.mu.Unlock()
	body, err := json.Marshal(&request{Op: op, Episode: e.key, Args: args})
	if err != nil {
		return nil, err
	}
	return e.do(ctx, body)
}

// End ends a session.
func (s *Sessions) End(session string) {
	s.mu.Lock()
	e := s.open[session]
	delete(s.open, session)
	s.mu.Unlock()
	if e != nil {
		e.end(0)
	}
}

// Close ends all workers and waits for them.
func (s *Sessions) Close() error { return s.pool.Close() }

// do carries out a request, in another worker if the first ends. It fails if that does something else with the same
// requests, or may not have them again.
func (e *exchange) do(ctx context.Context, body []byte) (json.RawMessage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		line, err := e.ask(ctx, body)
		if err == nil {
			e.keep(body, line)
			a, err := parse(line)
			if err != nil {
				return nil, err
			}
			return a.result()
		}
		if _, none := errors.AsType[*noWorkerError](err); none || ctx.Err() != nil || e.broken != nil {
			return nil, err
		}
		if fault := e.died(err); fault != nil {
			return nil, fault
		}
		if e.pool.first.description.Durable == durableEpisode {
			e.broken = fmt.Errorf("its worker ended: %w", err)
			return nil, e.broken
		}
	}
}
