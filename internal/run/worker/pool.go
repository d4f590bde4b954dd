// Package worker plays worlds in other processes, such as worlds in Python. The engine keeps the journal, asks the models
// and decides everything; a worker only runs the code of the world. docs/reference/worker-protocol.md is the contract
// between them.
//
// An episode stays with its worker. If that ends, another one plays the episode again from its replies, and the engine
// does not notice.
//
// pool.go starts workers and gives each episode one, start.go starts their processes, and process.go exchanges lines with one. What the
// lines hold is in protocol.go. kind.go makes a world.Kind, or a scorer, of what a worker describes, episode.go plays an episode, and
// environment.go keeps the sessions of an environment.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"parley/journal"
	"parley/world"
)

// Config says how workers are started.
type Config struct {
	// Name is the kind's name in plans: auction.py:Auction.
	Name string
	// File and Class are what a worker loads.
	File, Class string
	// Start starts a worker.
	Start func() (Started, error)
	// Conn is a worker that is already there. If it is set, Start is not used and there is only this one.
	Conn net.Conn
	// Max is how many workers there may be. Default: the number of cores less one, and at least one.
	Max int
	// Memory is how many bytes a worker may use: one that uses more gets no new episodes, and one that uses twice as much is
	// replaced. Default: 2 GiB.
	Memory int64
}

// Pool is the workers of a kind. Close ends them.
type Pool struct {
	Config
	role  role
	first *process // whose description counts
	seed  maphash.Seed

	mu      sync.Mutex
	all     []*process
	closed  bool
	serial  atomic.Int64 // of episodes
	started []*process   // all that were ever started, to wait for
}

// role is what a class is for.
type role string

const (
	roleWorld       role = "" // it plays episodes
	roleEnvironment role = "environment"
	roleScorer      role = "scorer" // it scores episodes of another run
)

// Open starts a worker and returns the kind that it describes.
func Open(c Config) (*Pool, world.Kind, error) {
	p, err := open(c, roleWorld)
	if err != nil {
		return nil, world.Kind{}, err
	}
	k, err := p.kind()
	if err != nil {
		return nil, world.Kind{}, errors.Join(fmt.Errorf("%s: %w", c.Name, err), p.Close())
	}
	return p, k, nil
}

// open starts a worker.
func open(c Config, r role) (*Pool, error) {
	if c.Max <= 0 {
		c.Max = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if c.Memory <= 0 {
		c.Memory = 2 << 30
	}
	p := &Pool{Config: c, role: r, seed: maphash.MakeSeed()}
	first, err := p.retry()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), p.Close())
	}
	p.first = first
	return p, nil
}

// start starts a worker. The caller holds mu, or nobody else knows the pool.
func (p *Pool) start() (*process, error) {
	h := hello{Parley: protocol, File: p.File, Class: p.Class, Role: p.role, Limit: int(stepLimit.Seconds())}
	s := Started{Conn: p.Conn}
	if p.Conn == nil {
		var err error
		if s, err = p.Start(); err != nil {
			return nil, err
		}
	} else if len(p.started) > 0 {
		return nil, fmt.Errorf("the program that plays the world has ended: %w", p.started[0].reason())
	}
	made, err := handshake(s, h)
	if err != nil {
		return nil, err
	}
	if p.first != nil {
		if err := same(p.first.description, made.description); err != nil {
			return nil, made.stop(err)
		}
	}
	p.all, p.started = append(p.all, made), append(p.started, made)
	return made, nil
}

// same returns an error unless a worker plays what the first one does.
func same(first, now description) error {
	if now.Version != first.Version {
		return &fault{Text: fmt.Sprintf("the version of the world is %d now, and was %d: do not edit a world while it is played", now.Version, first.Version)}
	}
	for _, file := range slices.Sorted(maps.Keys(now.Files)) {
		if now.Files[file] != first.Files[file] {
			return &fault{Text: file + " has changed since the run began: do not edit a world while it is played"}
		}
	}
	return nil
}

// retry is start for a worker that may be killed while it starts. An error in the code of the world stays the same.
func (p *Pool) retry() (w *process, err error) {
	for range maxDeaths {
		if w, err = p.start(); err == nil {
			break
		}
		if _, ok := errors.AsType[*fault](err); ok || p.Conn != nil {
			break
		}
	}
	return w, err
}

// take returns a worker for an episode: the one with the fewest, or a new one if all have some.
func (p *Pool) take() (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the workers have been closed")
	}
	p.all = slices.DeleteFunc(p.all, func(w *process) bool { return w.retired || !w.alive() })
	var best *process
	for _, w := range p.all {
		if best == nil || w.live < best.live {
			best = w
		}
	}
	if best == nil || best.live > 0 && len(p.all) < p.Max && p.Conn == nil {
		var err error
		if best, err = p.retry(); err != nil {
			return nil, err
		}
	}
	best.live++
	return best, nil
}

// release is called when an episode no longer needs its worker, which uses so many bytes of memory.
func (p *Pool) release(w *process, memory int64) {
	p.mu.Lock()
	w.live--
	if p.Conn == nil {
		w.retired = w.retired || memory > p.Memory
	}
	end := w.retired && (w.live == 0 || memory > 2*p.Memory)
	p.mu.Unlock()
	if end {
		_ = w.stop(fmt.Errorf("%w: %d MiB", errMemory, memory>>20)) // its other episodes continue elsewhere
	}
}

// name returns a new name of an episode or a session in a worker.
func (p *Pool) name(prefix string) string {
	return prefix + strconv.FormatInt(p.serial.Add(1), 10)
}

// ask asks any worker something that does not depend on an episode.
func (p *Pool) ask(ctx context.Context, r *request) (*answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	for deaths := 0; ; {
		w, err := p.take()
		if err != nil {
			return nil, err
		}
		line, err := w.ask(ctx, body)
		p.release(w, 0)
		if err == nil {
			return parse(line)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !innocent(err) {
			deaths++
		}
		if _, stuck := errors.AsType[*stuckError](err); stuck && deaths > 0 {
			return nil, err
		}
		if deaths == maxDeaths {
			return nil, fmt.Errorf("the worker ended %d times: %w", deaths, err)
		}
	}
}

func parse(line []byte) (*answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		if a, ok := refusable(line); ok {
			return a, nil
		}
		return nil, fmt.Errorf("the worker's answer is malformed: %w: %.200s", err, line)
	}
	return &a, nil
}

// refusable returns a step with a call that cannot be read, such as one whose temperature is a text, and says what is
// wrong with it in the words of the author.
func refusable(line []byte) (a *answer, ok bool) {
	var step struct {
		Notes []world.Note      `json:"notes"`
		Ask   []json.RawMessage `json:"ask"`
		Fork  *int              `json:"fork"`
		End   *outcome          `json:"end"`
		Error *fault            `json:"error"`
	}
	if json.Unmarshal(line, &step) != nil {
		return nil, false
	}
	for _, raw := range step.Ask {
		var c call
		if err := world.DecodeStrict(raw, &c); err != nil {
			return &answer{Notes: step.Notes, Fork: step.Fork, End: step.End, Error: step.Error, refused: c.refused(err)}, true
		}
	}
	return nil, false
}

// Code describes the code that the workers play.
func (p *Pool) Code() journal.Code {
	return journal.Code{Name: p.Name, Language: p.first.description.Language, Files: p.first.description.Files}
}

// Close ends all workers and waits for them.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	all := p.started
	p.mu.Unlock()
	for _, w := range all {
		_ = w.stop(errors.New("the run has ended"))
	}
	return nil
}

// Source splits the name of a kind into the file and the class of its code, as auction.py:Auction. ok is false for a
// kind that is part of this program.
func Source(kind string) (file, class string, ok bool) {
	file, class, ok = strings.Cut(kind, ":")
	return file, class, ok && file != "" && class != ""
}
