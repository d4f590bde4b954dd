package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// What both sides start: so many programs, so many at once, each of which waits so long.
const (
	programCount = 400
	programWidth = 100
	programSleep = "1"
)

// programs measures what Parley needs for each program that it runs: `parley run` of the kind task, which gives each a folder and checks its result,
// beside a loop that only starts the same command.
func programs(b *bench) error {
	b.printf("(h) programs: %d that wait for %s s, %d at once; best of three, taken in turn\n\n", programCount, programSleep, programWidth)
	plain, played := pace{}, pace{}
	for n := range 3 {
		for _, side := range []struct {
			to  *pace
			run func(dir string) *exec.Cmd
		}{
			{&plain, func(string) *exec.Cmd {
				self, _ := os.Executable()
				return exec.Command(self, "plain-programs", programSleep)
			}},
			{&played, b.programRun},
		} {
			dir := filepath.Join(b.dir, fmt.Sprintf("programs%d", n))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			cmd, began := side.run(dir), time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			p := cmd.ProcessState
			side.to.add(pace{
				rate: programCount / time.Since(began).Seconds(), wall: time.Since(began).Seconds(), peak: peakOf(cmd),
				cpu: float64((p.UserTime() + p.SystemTime()).Microseconds()) / programCount,
			})
		}
	}
	b.printf("    %-34s %12s %10s %22s %12s\n", "", "programs/s", "wall", "CPU, with the programs", "peak memory")
	for _, row := range []struct {
		name string
		pace
	}{{"plain loop", plain}, {"parley run, with a check of each", played}} {
		b.printf("    %-34s %12.0f %8.1f s %15.0f µs each %9.0f MB\n", row.name, row.rate, row.wall, row.cpu, row.peak)
	}
	b.printf("    Parley adds %.1f ms of CPU for each program with its folders, its supervisor and its check\n\n", (played.cpu-plain.cpu)/1000)
	return nil
}

// programRun returns the command that plays the programs.
func (b *bench) programRun(dir string) *exec.Cmd {
	var rows strings.Builder
	for i := range programCount {
		fmt.Fprintf(&rows, "{\"id\": \"t%d\", \"prompt\": \"Wait.\", \"check\": \"true\"}\n", i)
	}
	plan := fmt.Sprintf("kind: task\nepisodes: %d\nagents: {it: {program: {command: [sleep, %q]}}}\nlineup: {solver: it}\nparams: {tasks: tasks.jsonl, at_once: %d}\n", programCount, programSleep, programWidth)
	_ = os.WriteFile(filepath.Join(dir, "tasks.jsonl"), []byte(rows.String()), 0o600) // the run reports it
	_ = os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600)
	cmd := exec.Command(b.parley, "run", "plan.yaml", "--quiet", "--trust", "program=sleep "+programSleep, "--trust", "code="+filepath.Join(dir, "tasks.jsonl"))
	cmd.Dir = dir
	return cmd
}

// plainPrograms starts the same programs, and keeps nothing.
func plainPrograms(seconds string) error {
	var wg sync.WaitGroup
	slots, failed := make(chan struct{}, programWidth), make(chan error, programCount)
	for range programCount {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := exec.Command("sleep", seconds).Run(); err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	if len(failed) > 0 {
		return <-failed
	}
	return nil
}
