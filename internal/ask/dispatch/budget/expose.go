package budget

import (
	"context"

	"parley/llm"
)

// What a killed process may owe is made durable before it can be owed. That happens in steps, so that few attempts
// wait for the disk, and the steps are small beside what is not spent, so that a run which was killed can be
// resumed with the rest of its budget.
const (
	exposedStep  = 128 // 1/exposedStep of what is not spent is exposed beside what is at stake
	exposedSlack = 32  // less is exposed as soon as 1/exposedSlack of it is too much
)

// atStake returns what a process that is killed now may owe.
func (b *Budget) atStake() llm.Money { return b.sent.Plus(b.unrecorded) }

// unspent returns what is not recorded as spent.
func (b *Budget) unspent() llm.Money { return b.limit.Minus(b.spent).Plus(b.unrecorded) }

// toExpose returns what is at stake and a step more, within what the budget has.
func (b *Budget) toExpose() llm.Money {
	need := b.atStake()
	return max(need, min(need.Plus(min(need, b.unspent()/exposedStep)), b.unspent()))
}

// unsuitable reports whether less is exposed than is at stake, or far more.
func (b *Budget) unsuitable() bool {
	over := b.exposed.Minus(b.atStake())
	return b.limit > 0 && (over < 0 || over > max(0, b.unspent()/exposedSlack))
}

// send notes that an attempt is about to be sent which can cost held.
func (b *Budget) send(ctx context.Context, held llm.Money) *llm.Error {
	if !b.stake(held) {
		return nil
	}
	// One attempt exposes what is at stake for all that wait here.
	var err error
	select {
	case b.exposing <- struct{}{}:
		err = b.expose(ctx)
		<-b.exposing
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		b.stake(-held)
		return llm.ContextError(ctx)
	default:
		b.stake(-held)
		return &llm.Error{Kind: llm.KindBudget, Message: "what this call may cost cannot be recorded: " + err.Error(), Err: err}
	}
}

// stake changes what attempts that are being made can cost, and reports whether expose should be called.
func (b *Budget) stake(by llm.Money) bool {
	if b.Expose == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = b.sent.Plus(by)
	return b.unsuitable()
}

// settled exposes less after a call has ended, unless others are about to be sent: these do so where it is due.
func (b *Budget) settled(ctx context.Context) {
	if b.Expose == nil {
		return
	}
	b.mu.Lock()
	due := b.reserved <= b.sent && b.unsuitable()
	b.mu.Unlock()
	if !due {
		return
	}
	select {
	case b.exposing <- struct{}{}:
		_ = b.expose(ctx) // what is exposed is too much, which does no harm
		<-b.exposing
	default:
	}
}

// expose makes durable what is at stake, if what is exposed is unsuitable.
func (b *Budget) expose(ctx context.Context) error {
	b.mu.Lock()
	amount, unsuitable := b.toExpose(), b.unsuitable()
	if unsuitable && amount < b.exposed {
		b.exposed = amount // first, so that whatever begins now exposes more again
	}
	b.mu.Unlock()
	if !unsuitable {
		return nil
	}
	if err := b.Expose(ctx, amount); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.exposed = amount
	return nil
}
