package cli

import (
	"context"
	"errors"
	"iter"
	"path/filepath"

	"parley/internal/ask/dispatch"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/llm"
)

// listDigests prints the record of each request of a file as it is before it is asked: id, sample and digest. Nothing is asked.
func (c *askCmd) listDigests(ctx context.Context, s *State, g *exit.Gate, defs bulk.Defaults, path string) error {
	if c.Out != "" {
		return exit.Usagef("--digests writes nothing to --out; leave one of them out")
	}
	defs.Open = bulk.OpenIn(ctx, filepath.Dir(path))
	in, err := bulk.OpenJSONL(s.Stdin, path, defs, g.Shut)
	if err != nil {
		return err
	}
	m := &bulk.Asking{Source: in, Sink: bulk.NewOrdered(s.Stdout, bulk.Window), Samples: c.Samples, Keys: bulk.NewKeyer(), Gate: g, Tally: &bulk.Tally{}}
	m.Run(ctx, unasked{})
	code, err := g.Reason()
	if err != nil {
		return errors.Join(&exit.Error{Code: code, Err: err}, in.Close())
	}
	if code == exit.OK && m.Tally.Now().Rejected > 0 {
		code = exit.Failed
	}
	return errors.Join(exit.Silent(code), in.Close())
}

// unasked is an asker that asks nothing: the record of a request has neither an answer nor an error.
type unasked struct{}

func (unasked) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	n := 0
	for range reqs {
		if ctx.Err() != nil {
			break
		}
		done(n, llm.Result{})
		n++
	}
	return n
}

func (unasked) Drain()                   {}
func (unasked) Stats() dispatch.Snapshot { return dispatch.Snapshot{} }
func (unasked) Close() error             { return nil }
