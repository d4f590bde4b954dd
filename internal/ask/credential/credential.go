// Package credential gives the key of a provider: the value of an environment variable, what a program prints, or a token
// from Google's credentials.
//
// What it promises: however many calls wait for a key, the program runs once at a time, and so does the search for credentials. A
// key is used until shortly before it expires, and replaced if a server refuses it. Nothing of the program's standard output is in
// any error.
//
// For AWS there is no key to send: a Signer signs requests with the credentials that the AWS SDK finds (sigv4.go). A Source and
// a Signer may be used from several goroutines at once.
//
// It does not decide whether a program may run (package trust does, before a provider is opened), nor where a token may be sent
// (package provider does).
package credential

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/redact"
	"parley/llm"
)

const (
	renewAhead     = time.Minute      // a key is renewed so long before it expires
	retryPause     = 5 * time.Second  // after a failure, the program is not run again for so long
	renewPause     = 10 * time.Second // a key that replaced a refused one is not replaced again for so long
	maxKey         = 16 << 10
	formerKeys     = 2 // older keys that are still removed from answers
	programTimeout = time.Minute
	maxPrint       = 64 << 10
)

// Key is a key that can be sent. Its zero value is no key.
type Key struct {
	Value string
	// Hide removes this key, and those before it, from what a server sends. It is nil without a key.
	Hide *redact.Redactor
	// Project is the project that calls are counted for, in Google's own header, or "".
	Project string

	expires time.Time // zero: not known
	renew   time.Time // from then on, a new one is wanted; zero: never
	at      time.Time // when it was got
	again   bool      // it replaced a key that a server refused
	refused atomic.Bool
	before  []string // older keys
}

// Source gives the key of one provider.
type Source struct {
	name    string
	command []string
	run     func(ctx context.Context, command []string) (stdout []byte, err error)
	fetch   func(ctx context.Context) (*Key, error) // gets a new key; nil: the key does not change
	key     atomic.Pointer[Key]
	turn    chan struct{} // whoever takes its element may fetch, and use the fields below

	failure error
	failed  time.Time
}

// New returns the Source of a provider. It reads a variable now: it is an error if it is not set. It runs a program, and looks
// for credentials, only when a key is wanted.
func New(p provider.Provider) (*Source, error) {
	s := &Source{name: p.Name, command: p.KeyCommand, run: runProgram, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	switch {
	case p.Credentials == provider.CredentialsGoogle:
		s.fetch = fromGoogle
		return s, nil
	case len(p.KeyCommand) > 0:
		s.fetch = s.fromProgram
		return s, nil
	}
	key := &Key{}
	if p.KeyEnv != "" {
		key.Value = strings.TrimSpace(os.Getenv(p.KeyEnv))
		switch {
		case key.Value == "":
			return nil, fmt.Errorf("provider %s: the environment variable %s is not set; export it with your key, or use sim/any, which needs no key", p.Name, p.KeyEnv)
		case !printable(key.Value):
			return nil, fmt.Errorf("provider %s: the value of %s has a character that no key has", p.Name, p.KeyEnv)
		}
	}
	key.Hide = redact.New(key.Value)
	s.key.Store(key)
	return s, nil
}

func printable(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// Last returns the key that was sent last, or no key.
func (s *Source) Last() *Key {
	if k := s.key.Load(); k != nil {
		return k
	}
	return &Key{}
}

// Key returns the key to send now. It may wait for the program. An error is an *llm.Error, or that of ctx.
func (s *Source) Key(ctx context.Context) (*Key, error) {
	if k := s.key.Load(); k.good() {
		return k, nil
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	k := s.key.Load()
	if k.good() {
		return k, nil
	}
	next, err := s.next(ctx, k)
	switch {
	case err == nil:
		s.key.Store(next)
		return next, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case k != nil && !k.refused.Load() && time.Now().Before(k.expires):
		return k, nil // it is still good for a while
	}
	return nil, err
}

// good reports whether k can be sent without looking for a newer key.
func (k *Key) good() bool {
	return k != nil && !k.refused.Load() && (k.renew.IsZero() || time.Now().Before(k.renew))
}

// next gets a new key.
func (s *Source) next(ctx context.Context, k *Key) (*Key, error) {
	if s.failure != nil && time.Since(s.failed) < retryPause {
		return nil, s.failure
	}
	next, err := s.fetch(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		e := *llm.AsError(err)
		e.Provider = s.name
		s.failed, s.failure = time.Now(), &e
		return nil, s.failure
	}
	s.failure = nil
	if k != nil {
		next.again = k.refused.Load()
		next.before = append(next.before, k.before...)
		if k.Value != next.Value {
			next.before = append(next.before, k.Value)
		}
		next.before = next.before[max(0, len(next.before)-formerKeys):]
	}
	next.Hide = redact.New(append(next.before, next.Value)...)
	return next, nil
}

// fromProgram runs the program.
func (s *Source) fromProgram(ctx context.Context) (*Key, error) {
	out, err := s.run(ctx, s.command)
	if err == nil {
		var k *Key
		if k, err = parse(out, time.Now()); err == nil {
			return k, nil
		}
	}
	return nil, &llm.Error{Kind: llm.KindAuth, Message: fmt.Sprintf("key_command %s: %v", provider.CommandLine(s.command), err)}
}

// fromGoogle returns a new token from Google's credentials.
func fromGoogle(ctx context.Context) (*Key, error) {
	t, err := findGoogle(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	k := &Key{Value: t.Value, Project: t.Project, at: now, expires: t.Expires}
	if k.Value == "" || len(k.Value) > maxKey || !printable(k.Value) || !printable(k.Project) {
		return nil, &llm.Error{Kind: llm.KindAuth, Message: "Google's credentials gave a token that cannot be sent"}
	}
	k.plan(now)
	return k, nil
}

// plan sets when a new key is wanted.
func (k *Key) plan(now time.Time) {
	if !k.expires.IsZero() {
		k.renew = k.expires.Add(-min(renewAhead, k.expires.Sub(now)/10))
	}
}

// Refuse records that a server refused k. It reports whether there may be another key: the caller asks for it with Key,
// and tries again if it is another.
func (s *Source) Refuse(k *Key) bool {
	if s.fetch == nil || k.again && time.Since(k.at) < renewPause {
		return false
	}
	k.refused.Store(true)
	return true
}
