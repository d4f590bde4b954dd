package limiter

import (
	"math"
	"time"
)

// refusals is what adapt knows of calls that were refused for no rate that is known.
//
// The calls that were in flight at a refusal and are not refused too are those that the server
// allows: that is the new limit. A refusal costs answersForRefusal answers before the limit may
// grow again, so that trying for more costs few refusals. If calls are refused although the limit
// has not grown, it was no limit of calls in flight: many refusals cut the limit by a fifth, and
// single ones that continue whatever the limit are accepted.
type refusals struct {
	cut     time.Time // time of the last cut: calls sent before it cannot cause another
	before  int       // calls in flight at that time
	volley  int       // how many of them were refused
	ceiling float64   // calls in flight that were too many; 0: unknown
	owed    int       // answers until the limit may grow
	denied  int       // refusals in a row of a single call
	tried   bool      // the limit has grown since the last cut
	since   int       // answers since the last cut
	refused int       // refusals since then, without a cut
	strays  int       // single refusals that a lower limit did not prevent
	was     float64   // the limit before them
	quiet   int       // answers since the last refusal

	failFrom  time.Time // the first failure of a group
	failAt    int       // calls in flight at that time
	failCount int
	troubled  time.Time // the first failure since the server was last seen to work
	whole     float64   // the limit before the first
	mixed     bool      // calls that were sent before it were answered after it
	alone     bool      // a single call failed too, so their number is not the reason
}

const (
	answersForRefusal = 400 // 0.25%
	maxOwed           = 16_000
	deniedOwed        = 20
	maxVolley         = 2   // refusals for each call that is allowed
	manyRefused       = 10  // answers for a refusal: with fewer, refusals are many
	gentleStrays      = 2   // that lower the limit by one
	maxStrays         = 8   // from then on they lower nothing
	quietAnswers      = 100 // without a refusal: earlier ones were no pattern
	outgrown          = 1.25

	failTime  = time.Second // failures within it belong together
	minFails  = 3
	failShare = 0.1
)

// accepted notes an answer.
func (r *refusals) accepted() {
	r.since++
	r.denied = 0
	r.owed = max(0, r.owed-1)
	if r.quiet++; r.quiet >= quietAnswers {
		r.strays = 0
	}
}

// refuse notes that the server refused p, with inFlight calls at the time, this one included.
func (a *adapt) refuse(p *Permit, inFlight int, now time.Time) {
	a.quiet = 0
	if a.settles < maxSettle {
		a.settles = max(a.settles, min(now.Sub(p.sent), maxSettle))
	}
	if !p.sent.After(a.cut) {
		a.owe(1)
		a.volley++
		a.limit = math.Max(1, math.Min(a.limit, float64(a.before-a.volley)))
		a.forgive()
		return
	}
	if inFlight == 1 && a.since == 0 {
		a.denied++
	}
	few := a.since >= manyRefused*(a.refused+1)
	a.refused++
	if few && !a.tried {
		if a.strays++; a.strays == 1 {
			a.was = a.limit
		}
		if a.strays >= maxStrays {
			if a.strays == maxStrays {
				a.limit = math.Max(a.limit, a.was)
			}
			return
		}
	}
	a.stopDoubling()
	a.cutAt(inFlight, now)
	limit := float64(a.before - 1)
	if !few && !a.tried || a.strays > gentleStrays {
		limit = math.Min(limit, a.limit*cutFactor)
	}
	a.limit = math.Max(1, math.Min(a.limit, limit))
	a.ceiling = float64(a.before)
	a.tried = false
	a.owe(1)
}

// cutAt begins a cut with inFlight calls in flight.
func (a *adapt) cutAt(inFlight int, now time.Time) {
	a.cut, a.before, a.volley = now, inFlight, 1
	if !a.used(inFlight) {
		a.before = int(a.limit)
	}
	a.since, a.refused = 0, 0
}

// owe makes growth wait after refusals. It waits less if not even a single call is allowed: others
// use the account.
func (a *adapt) owe(refusals int) {
	a.owed = min(a.owed+refusals*answersForRefusal, maxOwed)
	if a.denied > 0 {
		a.owed = min(a.owed, deniedOwed)
	}
}

// forgive bounds what a volley of refusals costs where few calls were allowed: another run may have used the account, and
// a few calls at a time would take hours to answer for it. A server that failed the calls may fall over again.
func (a *adapt) forgive() {
	switch {
	case !a.troubled.IsZero():
	case a.limit < 2:
		a.owed = min(a.owed, deniedOwed)
	default:
		a.owed = min(a.owed, int(a.limit)*maxVolley*answersForRefusal)
	}
}

// late notes that the server did not answer a call sent at sent in time.
func (a *adapt) late(sent, now time.Time) {
	if !sent.After(a.cut) {
		return
	}
	a.stopDoubling()
	a.cutAt(int(a.limit), now)
	a.limit = math.Max(1, a.limit*cutFactor)
}

// overloaded notes that the server is short of capacity: see failed. If so many calls were fine
// before, the limit stays, and does not grow for a while.
func (a *adapt) overloaded(p *Permit, inFlight int, now time.Time) {
	if !a.doubling || a.reports {
		a.hold = now.Add(overloadHold)
	}
	a.failed(p, inFlight, now)
}

// failed notes that the server failed p or was not there. While the limit grows, a single failure
// stops that for a while, and several at once count like refusals. After that each does.
func (a *adapt) failed(p *Permit, inFlight int, now time.Time) {
	a.alone = a.alone || p.level == 1
	switch {
	case a.reports:
	case a.doubling && p.sent.After(a.cut):
		if now.Sub(a.failFrom) > failTime {
			a.failFrom, a.failAt, a.failCount = now, inFlight, 0
		}
		a.failCount++
		a.hold = now.Add(a.settles)
		if a.failCount >= max(minFails, int(failShare*float64(a.failAt))) {
			a.failing(a.failFrom)
			a.refuse(p, a.failAt, now)
			a.volley = a.failCount
		}
	case a.since > 0 || !p.sent.After(a.cut):
		a.failing(now)
		a.refuse(p, inFlight, now)
	case !a.cut.IsZero():
		a.failing(now)
		a.limit = math.Max(1, math.Min(a.limit, float64(inFlight-1)))
	}
}

// failing notes the limit before the first of several failures.
func (a *adapt) failing(first time.Time) {
	if a.troubled.IsZero() {
		a.troubled, a.whole = first, a.limit
	}
}

// recovered notes the first answer after failures to a call that was sent after the first of them. If
// calls failed until then whatever their number, and so many were fine before, their number was not the
// reason. Otherwise half of them are tried. Calls that were in flight before may be answered although
// the server goes away.
func (a *adapt) recovered(p *Permit) {
	if a.troubled.IsZero() {
		a.alone = false
		return
	}
	if p.sent.Before(a.troubled) {
		a.mixed = true
		return
	}
	all := !a.mixed || a.alone
	a.troubled, a.mixed, a.alone = time.Time{}, false, false
	switch {
	case !all || a.limit >= a.whole:
	case a.whole <= math.Max(FirstConcurrency, outgrown*float64(a.peak)):
		a.limit, a.doubling, a.tried, a.ceiling, a.owed = a.whole, true, true, 0, 0
	default:
		a.limit = math.Max(a.limit, math.Max(float64(a.peak), a.whole/2))
	}
}

// arrived notes that the server accepts calls again. For a while it has refused or failed every call, so their number was
// not the reason: as many as it answered before are allowed at once.
func (a *adapt) arrived() {
	a.troubled, a.denied = time.Time{}, 0
	if peak := math.Min(a.max, float64(a.peak)); a.limit < peak {
		a.limit, a.doubling, a.tried, a.ceiling, a.owed = peak, true, true, 0, 0
	}
}
