package worker

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// stepLimit is how long a step may take, unless the class says something else. The worker ends a step that takes longer
// and reports its line; if it cannot, because the step is in code that nothing interrupts, it is killed.
const stepLimit = time.Minute

// traceTime is how long a worker may take to say where it is, before it is killed.
const traceTime = time.Second

// limit returns how long a step may take.
func (p *process) limit() time.Duration {
	if s := p.said.Limit; s > 0 && s < time.Hour.Seconds()*24 {
		return time.Duration(s * float64(time.Second))
	}
	return stepLimit
}

// patience returns how long the worker has to answer one request.
func (p *process) patience() time.Duration { return p.limit() + p.limit()/2 + traceTime }

// stuckError says that a worker was killed because a step took too long.
type stuckError struct {
	where string // file and line; empty: unknown
	limit time.Duration
}

// Error says where the step is, if that is known.
func (e *stuckError) Error() string {
	text := fmt.Sprintf("a step took longer than %v and could not be interrupted: its worker was ended. Is it a loop without an end, or a long call of a library?", e.limit)
	if e.where != "" {
		text = e.where + ": " + text
	}
	return text
}

// tooLate asks a worker where it is, and kills it.
func (p *process) tooLate() {
	p.mu.Lock()
	wait := traceTime
	if p.asked || p.Cmd == nil || askWhere(p.Cmd.Process) != nil {
		wait = 0
	}
	p.asked = true
	p.mu.Unlock()
	time.AfterFunc(wait, func() {
		p.mu.Lock()
		err := &stuckError{where: p.where, limit: p.limit()}
		p.mu.Unlock()
		_ = p.stop(err)
	})
}

// traced reports whether a line is part of the traceback that a worker writes when it is asked where it is:
// `File "/home/me/auction.py", line 12 in play`, innermost first. It keeps the first line that is code of the world.
func (p *process) traced(line []byte) bool {
	if bytes.HasPrefix(line, []byte(`{"id":`)) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked {
		return false
	}
	file, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(line)), `File "`), `", line `)
	if number, _, _ := strings.Cut(rest, " "); ok && p.where == "" && filepath.Dir(file) == p.folder {
		p.where = filepath.Base(file) + ":" + number
	}
	return true
}
