package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxLine limits the size of a line.
const maxLine = 64 << 20

// process is one worker. Its methods may be called from any goroutine.
type process struct {
	Started
	description description
	folder      string // of the file that it plays

	writing sync.Mutex // a worker that writes an answer may not read: whoever writes must not hold mu
	mu      sync.Mutex
	next    int                   // the id of the next request
	waiting map[int]chan<- []byte // the lines of answers, without their ids
	acts    map[int]bool          // those of waiting that run beside the others
	err     error                 // why it ended
	blamed  int                   // the request that it answered when it ended; 0: none
	busy    int                   // requests that wait, but for acts: it answers one after the other
	late    *time.Timer           // runs while busy; ends a process that works on one request for too long
	asked   bool                  // where the request is that takes too long
	where   string                // the answer
	ended   chan struct{}         // closed when it has ended

	// Guarded by the pool.
	live    int  // episodes
	retired bool // it gets no new ones
}

// handshake exchanges the first lines, and starts to read answers.
func handshake(s Started, h hello) (*process, error) {
	conn := s.Conn
	p := &process{Started: s, folder: filepath.Dir(h.File), waiting: map[int]chan<- []byte{}, acts: map[int]bool{}, ended: make(chan struct{})}
	line, err := json.Marshal(h)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(stepLimit))
	}
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	if err == nil {
		line, err = readLine(in)
	}
	if err == nil {
		err = json.Unmarshal(line, &p.description)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	p.late = time.AfterFunc(stepLimit, p.tooLate)
	p.late.Stop()
	go p.read(in, err)
	switch {
	case err != nil:
		err = fmt.Errorf("the worker did not say what it plays: %w", p.stop(err))
	case p.description.Parley != protocol:
		err = p.stop(fmt.Errorf("the worker speaks version %d of the protocol, and this program version %d: install the same version of both", p.description.Parley, protocol))
	case p.description.Error != nil:
		err = p.stop(p.description.Error)
	}
	return p, err
}

// readLine reads a line. The result is valid until the next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > maxLine {
			return nil, fmt.Errorf("a line has more than %d MiB", maxLine>>20)
		}
		line, err = in.ReadSlice('\n')
		long = append(long, line...)
	}
	if err != nil {
		return nil, errEnded
	}
	return long, nil
}

// errEnded says that a worker ended. How its connection broke depends on the moment and says nothing.
var errEnded = errors.New("it ended")

// read passes answers to those who wait for them, until the connection ends.
func (p *process) read(in *bufio.Reader, err error) {
	for err == nil {
		var line []byte
		if line, err = readLine(in); err != nil {
			break
		}
		if p.traced(line) {
			continue
		}
		var id int
		var rest []byte
		if id, rest, err = cutID(line); err != nil {
			break
		}
		to := p.answered(id)
		if to == nil {
			err = fmt.Errorf("it answered request %d, which was not asked", id)
			break
		}
		to <- bytes.Clone(rest)
	}
	p.late.Stop()
	_ = p.Conn.Close() // the error that matters is the first
	if p.Cmd != nil {
		if p.kill(); p.wait() != nil && p.Cmd.ProcessState != nil {
			err = fmt.Errorf("%w (%v)", err, p.Cmd.ProcessState)
		}
	}
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	all := p.waiting
	p.waiting = nil
	if !errors.Is(p.err, errMemory) {
		for id := range all { // it answers them in order, but for acts
			if !p.acts[id] && (p.blamed == 0 || id < p.blamed) {
				p.blamed = id
			}
		}
	}
	p.mu.Unlock()
	for _, to := range all {
		close(to)
	}
	close(p.ended)
}

// answered returns who waits for an answer; nil: nobody.
func (p *process) answered(id int) chan<- []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.waiting[id]
	if to != nil && !p.acts[id] {
		if p.busy--; p.busy > 0 {
			p.late.Reset(p.answerLimit()) // for the next one
		} else {
			p.late.Stop()
		}
	}
	delete(p.waiting, id)
	delete(p.acts, id)
	return to
}

// cutID returns the id of an answer, which is its first field, and the object without it. It changes line.
func cutID(line []byte) (int, []byte, error) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	end := bytes.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return 0, nil, fmt.Errorf("its answer does not begin with {\"id\":…: %.80q", line)
	}
	id, err := strconv.Atoi(string(bytes.TrimSpace(rest[:end])))
	if err != nil {
		return 0, nil, fmt.Errorf("its answer has the id %.20q: want a whole number", rest[:end])
	}
	if rest = rest[end:]; rest[0] == '}' {
		return id, []byte("{}"), nil
	}
	rest[0] = '{'
	return id, rest, nil
}

// errMemory ends a process that uses too much memory.
var errMemory = errors.New("it used too much memory")

// deathError says that a process ended before it answered a request.
type deathError struct {
	error
	innocent bool // it was busy with another request
}

// Unwrap returns why it ended.
func (e *deathError) Unwrap() error { return e.error }

// innocent reports whether a worker ended while it was busy with something else than the request that got the error.
func innocent(err error) bool {
	d, ok := errors.AsType[*deathError](err)
	return ok && d.innocent
}

// send writes a request, which is a JSON object, with an id. The channel gets the answer without its id, and is closed if
// the process ends first. An act runs beside other requests.
func (p *process) send(body []byte, act bool) (<-chan []byte, int, error) {
	p.writing.Lock() // so that the process gets requests in the order of their ids
	p.mu.Lock()
	if p.waiting == nil || p.err != nil {
		p.writing.Unlock()
		defer p.mu.Unlock()
		return nil, 0, &deathError{p.err, true}
	}
	p.next++
	id := p.next
	answered := make(chan []byte, 1)
	p.waiting[id] = answered
	if act {
		p.acts[id] = true
	} else if p.busy++; p.busy == 1 {
		p.late.Reset(p.answerLimit())
	}
	p.mu.Unlock()
	line := make([]byte, 0, len(body)+20)
	line = strconv.AppendInt(append(line, `{"id":`...), int64(id), 10)
	_, err := p.Conn.Write(append(append(append(line, ','), body[1:]...), '\n'))
	p.writing.Unlock()
	if err != nil {
		_ = p.stop(nil) // it has ended, and read says how
		return nil, 0, p.death(id)
	}
	return answered, id, nil
}

// ask sends a request and waits for its answer.
func (p *process) ask(ctx context.Context, body []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answered, id, err := p.send(body, false)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case line, ok := <-answered:
		if !ok {
			return nil, p.death(id)
		}
		return line, nil
	}
}

// tell sends a request that has no answer. A process that has ended need not know.
func (p *process) tell(body []byte) {
	p.writing.Lock()
	_, err := p.Conn.Write(append(body, '\n'))
	p.writing.Unlock()
	if err != nil {
		_ = p.stop(nil) // as in send
	}
}

// reason returns why the process ended.
func (p *process) reason() error {
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// death returns why the process ended before it answered a step.
func (p *process) death(id int) error { return &deathError{p.reason(), id != p.blamed} }

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && p.waiting != nil
}

// kill ends the process at once.
func (p *process) kill() {
	if p.Cmd != nil && p.Cmd.Process != nil {
		_ = p.Cmd.Process.Kill() // it may have ended
	}
}

// stop ends the process, waits for it, and returns why.
func (p *process) stop(why error) error {
	p.mu.Lock()
	if p.err == nil {
		p.err = why
	}
	p.mu.Unlock()
	_ = p.Conn.Close() // read sees it
	<-p.ended
	return why
}

// stepLimit is how long a step may take, unless the class says something else. The worker ends a step that takes longer
// and reports its line; if it cannot, because the step is in code that nothing interrupts, it is killed.
const stepLimit = time.Minute

// traceTime is how long a worker may take to say where it is, before it is killed.
const traceTime = time.Second

// limit returns how long a step may take.
func (p *process) limit() time.Duration {
	if s := p.description.Limit; s > 0 && s < time.Hour.Seconds()*24 {
		return time.Duration(s * float64(time.Second))
	}
	return stepLimit
}

// answerLimit returns how long the worker has to answer one request.
func (p *process) answerLimit() time.Duration { return p.limit() + p.limit()/2 + traceTime }

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
