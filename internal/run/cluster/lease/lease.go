// Package lease divides what the workers of a run share: the limits of providers' accounts, and the budget.
//
// For both there is one protocol. A member reports every Interval what its worker uses and needs, and at once when it is short of
// something. The keeper, of which there is one, answers with a grant: what the worker may use. How these travel is the caller's
// business. They may be lost, late, doubled and out of order: Header sorts that out. A keeper that replaces another has a
// higher epoch.
//
// Limits and money travel apart, because their keepers differ in one thing. What is granted of a limit is used up by itself, so a grant expires, and the
// keeper needs no memory: it must answer within moments, whatever the disk does. What is granted of a budget may be billed, so the
// most that calls can cost is durable before they are sent, and a grant ends only with the worker.
//
// Limits: the shares of an account never add up to more than 1, messages in flight included:
// a share grows only after others have confirmed that theirs shrank, or these have expired. A share
// is valid for Lease, measured by the member from the report that it answers. The keeper counts on it
// for expiry, measured from the grant. Only intervals are measured, so clocks may differ.
// If the keeper is gone (see LimitsMember.Unanswered), a worker continues with what it has, but at most with
// its equal part. A worker that is cut off has no share after Lease.
// Grants also carry what all workers together have learned about an account: its limits, and how many
// tokens models take. So a worker that joins begins with what the others know.
//
// Money: a worker spends only what it was allotted. Its dispatcher's budget is a part (see budget.NewPart) that a MoneyMember keeps in
// step with the keeper. What is recorded as spent and what calls that are not recorded can cost never exceed the limit, and the
// second is durable before a call is sent: whoever is killed, no more is at risk than calls which were really open can
// cost. What a worker was allotted beside that is not at risk, so it need not be durable. What a worker does not need is recalled
// when another needs it. A call is refused for money only when nothing is in flight anywhere. What a lost
// worker had in flight stays at risk, unless the caller knows that it is recorded; the rest of its allotment is free again.
package lease

import "time"

const (
	// Interval is how often a member reports, even if it needs nothing.
	Interval = time.Second
	// Lease is how long a share of a limit is valid, from the report that asked for it.
	Lease = 3 * time.Second
	// expiry is how long the keeper counts on a share, from its grant. It is longer than Lease, so
	// that clocks may run at different speeds.
	expiry = 4 * time.Second
	// MaxWorkers is how many workers may have a share at once. Others get none.
	MaxWorkers = 4096
)

// Header is what every report and every grant begins with.
type Header struct {
	// Worker is the name of the worker's session. A worker that starts again has another.
	Worker string `json:"worker"`
	// Seq numbers the reports of a session from 1. A grant has that of the last report that its keeper knows.
	Seq uint64 `json:"seq"`
	// Epoch is the keeper's, and Number numbers the grants of a worker and an epoch from 1. A report has those of the last grant that
	// is in force: the member ignores older ones.
	Epoch  uint64 `json:"epoch,omitzero"`
	Number uint64 `json:"number,omitzero"`
}

// reporter is a member's side of the protocol.
type reporter struct {
	worker string
	seq    uint64 // of the last report
	epoch  uint64 // of the last grant
	number uint64
}

// report returns the header of the next report.
func (r *reporter) report() Header {
	r.seq++
	return Header{Worker: r.worker, Seq: r.seq, Epoch: r.epoch, Number: r.number}
}

// isNew reports whether a grant is for this member, and newer than the last.
func (r *reporter) isNew(g Header) bool {
	return g.Worker == r.worker && (g.Epoch > r.epoch || g.Epoch == r.epoch && g.Number > r.number)
}

// apply notes a grant that is new. It reports whether another keeper made it than the last.
func (r *reporter) apply(g Header) (replaced bool) {
	replaced = g.Epoch > r.epoch
	r.epoch, r.number = g.Epoch, g.Number
	return replaced
}

// session is a keeper's side of the protocol, for one worker.
type session struct {
	name   string
	seq    uint64 // of the last report
	number uint64 // of the last grant
}

// receive notes a report. It returns false if it is not newer than the last, or if another keeper has replaced the one with this epoch.
func (s *session) receive(r Header, epoch uint64) bool {
	if r.Seq <= s.seq || r.Epoch > epoch {
		return false
	}
	s.seq = r.Seq
	return true
}

// grant returns the header of the next grant.
func (s *session) grant(epoch uint64) Header {
	s.number++
	return Header{Worker: s.name, Seq: s.seq, Epoch: epoch, Number: s.number}
}
