package process

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// marked lists the processes with a mark.
func marked(mark string) (found []int) {
	for _, pid := range processes() {
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil || pid == os.Getpid() {
			continue // it has ended, or is another user's
		}
		for variable := range bytes.SplitSeq(env, []byte{0}) {
			if fits(string(variable), mark) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// processes lists all processes.
func processes() (all []int) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range names {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// parent returns the parent of a process, or 0.
func parent(pid int) int {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b[max(0, bytes.LastIndexByte(b, ')')):]), ") ") // its name may hold anything
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}

// descendants lists what this process has started, directly or not.
func descendants() (found []int) {
	children := map[int][]int{}
	for _, pid := range processes() {
		p := parent(pid)
		children[p] = append(children[p], pid)
	}
	next := []int{os.Getpid()}
	for len(next) > 0 {
		own := children[next[0]]
		next = append(next[1:], own...)
		found = append(found, own...)
	}
	return found
}

// Supervise runs a program in place of its caller, ends everything that is left when it ends, and returns its exit code. Whatever the program starts becomes
// a child of this process when it detaches itself, so it is found however it hides. It does the same when the process that started this one dies.
// The caller must have started nothing else.
func Supervise(args []string) int {
	runtime.LockOSThread() // the parent's death is signalled for the thread
	syscall.CloseOnExec(whyFile)
	why := os.NewFile(whyFile, "why")
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	errSub := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	errDeath := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
	if len(args) == 0 || errors.Join(errSub, errDeath) != nil {
		return 126
	}
	cmd := exec.Command(args[0], args[1:]...)                          //nolint:gosec,noctx // it is what this process is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr //nolint:forbidigo // it stands between Parley and the program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_, _ = why.WriteString(err.Error())
		return 127
	}
	_ = why.Close()
	debug.FreeOSMemory()   // it only waits from here on, and there may be hundreds
	if os.Getppid() == 1 { // the parent died before it could be watched; in a container it may be 1, and then it is asked to stop as usual
		select {
		case asked <- syscall.SIGTERM:
		default:
		}
	}
	code := make(chan int, 1)
	go func() { // it ends with the process
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			if errors.Is(err, syscall.ECHILD) {
				close(code)
				return
			}
			if pid == cmd.Process.Pid && (status.Exited() || status.Signaled()) {
				exit := 128 + int(status.Signal())
				if status.Exited() {
					exit = status.ExitStatus()
				}
				code <- exit
			}
		}
	}()
	exit, late := -1, (<-chan time.Time)(nil)
	for exit < 0 {
		select {
		case exit = <-code:
		case <-asked:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			late = time.After(grace / 2)
		case <-late:
			exit = 128 + int(syscall.SIGKILL)
		}
	}
	for range rounds {
		found := descendants()
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			kill(pid)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return exit
}
