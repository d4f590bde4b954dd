package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"sync"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
)

// profileFlags are flags of every command, for people who work on parley. No help lists them: CONTRIBUTING.md does.
type profileFlags struct {
	CPUProfile string `name:"cpuprofile" hidden:"" placeholder:"FILE" help:"Write a CPU profile."`
	MemProfile string `name:"memprofile" hidden:"" placeholder:"FILE" help:"Write a profile of the live heap and of all allocations."`
	Trace      string `hidden:"" placeholder:"FILE" help:"Write an execution trace."`
}

// memProfileRate is how many bytes are allocated between two samples of --memprofile: the default of package runtime.
const memProfileRate = 512 << 10

// profiles are what a process measures of itself.
type profiles struct {
	mu      sync.Mutex
	running []*profile
}

// profile is a measurement: start begins to write to a file, and stop completes what it wrote.
type profile struct {
	flag, path  string
	start, stop func(io.Writer) error
	file        *output.Pending
}

// start begins to measure what the flags ask for. After an error nothing is measured, and no file is left.
func (p *profiles) start(f profileFlags) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range []*profile{
		{flag: "--cpuprofile", path: f.CPUProfile, start: pprof.StartCPUProfile, stop: func(io.Writer) error { pprof.StopCPUProfile(); return nil }},
		{flag: "--memprofile", path: f.MemProfile, start: sampleMemory, stop: writeMemory},
		{flag: "--trace", path: f.Trace, start: trace.Start, stop: func(io.Writer) error { trace.Stop(); return nil }},
	} {
		if one.path == "" {
			continue
		}
		if err := p.begin(one); err != nil {
			for _, begun := range p.running {
				_ = begun.stop(io.Discard)
				begun.file.Abandon()
			}
			p.running = nil
			return exit.AsUsage(err)
		}
	}
	return nil
}

// begin creates the file of a measurement and starts it.
func (p *profiles) begin(one *profile) error {
	for _, other := range p.running {
		if other.path == one.path {
			return fmt.Errorf("%s and %s name the same file, %s: name another", other.flag, one.flag, one.path)
		}
	}
	out := output.File{Flag: one.flag, Path: one.path, New: true}
	if _, err := out.Check(); err != nil {
		return err
	}
	var err error
	if one.file, err = out.Create(); err != nil {
		return err
	}
	if err := one.start(one.file); err != nil {
		one.file.Abandon()
		return fmt.Errorf("%s: %w", one.flag, err)
	}
	p.running = append(p.running, one)
	return nil
}

// end completes the files, once: it is called when a command returns, and when the process ends without waiting for it.
func (p *profiles) end() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.running {
		if failed := one.stop(one.file); failed != nil {
			one.file.Abandon()
			err = errors.Join(err, fmt.Errorf("%s: %w", one.flag, failed))
			continue
		}
		err = errors.Join(err, one.file.Commit())
	}
	p.running = nil
	return err
}

// sampleMemory starts to count allocations. Main of package parley turns that off.
func sampleMemory(io.Writer) error {
	runtime.MemProfileRate = memProfileRate
	return nil
}

// writeMemory writes the live heap, and all allocations since the start.
func writeMemory(w io.Writer) error {
	runtime.GC() // the profile is that of the last collection
	return pprof.WriteHeapProfile(w)
}
