package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/process"
)

// detachedEnv is set for a process of --detach. Its value is the file that standard error goes to.
const detachedEnv = "PARLEY_DETACHED"

// logSuffix is added to the name of a run file to name the log of a process of --detach.
const logSuffix = "-log"

// detachedProcess is the line that --detach prints.
type detachedProcess struct {
	File string `json:"file"`
	PID  int    `json:"pid"`
	Log  string `json:"log"`
}

// detach starts the same command in the background, and returns when that process plays the run. If it ends
// before that, detach shows what it said, and returns its exit code.
func detach(s *State, g *exit.Gate, file string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--detach: %w", err)
	}
	path := file + logSuffix
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return exit.Usagef("--detach: %s is not a regular file: delete or rename it", path)
	}
	log, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return exit.AsUsage(fmt.Errorf("--detach: %w", err))
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	logged, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("--detach: %w", err)
	}
	cmd := exec.Command(self, s.Args...) //nolint:gosec,noctx // this program, which outlives the context
	cmd.Env = append(os.Environ(), detachedEnv+"="+path)
	cmd.Stderr, cmd.SysProcAttr = log, process.OwnSession()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("--detach: %w", err)
	}
	var plays atomic.Bool
	g.OnClose(func() {
		if !plays.Load() {
			_ = cmd.Process.Kill()
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		plays.Store(true)
		_, err = s.Stdout.Write(line)
		return errors.Join(err, cmd.Process.Release())
	}
	_ = cmd.Wait() // its code says how it ended
	if g.Closed() {
		return exit.Silent(exit.Interrupted)
	}
	return errors.Join(repeat(s.Stderr, io.NewSectionReader(log, logged, 1<<20)), exit.Silent(max(exit.Failed, cmd.ProcessState.ExitCode())))
}

// repeat copies a log to a terminal. Programs that a run started wrote to it too.
func repeat(to io.Writer, log io.Reader) error {
	text, err := io.ReadAll(log)
	_, printing := io.WriteString(to, terminal.Safe(string(text)))
	return errors.Join(err, printing)
}

// isDetached reports whether this is a process of --detach.
func isDetached(s *State) bool {
	log, ok := s.Env(detachedEnv)
	return ok && log != ""
}

// announceDetached prints that a process of --detach plays the run. From then on its standard output is its log.
func announceDetached(s *State, file string) {
	if !isDetached(s) {
		return
	}
	log, _ := s.Env(detachedEnv)
	b, err := json.Marshal(detachedProcess{File: file, PID: os.Getpid(), Log: log})
	if err == nil {
		_, err = s.Stdout.Write(append(b, '\n'))
	}
	if err != nil {
		s.tell("--detach: " + err.Error())
	}
	s.Stdout = s.Stderr
}
