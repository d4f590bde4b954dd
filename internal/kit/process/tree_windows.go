package process

import (
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a program and what it starts: a job object, which the system ends when this process does.
type tree struct {
	cmd *exec.Cmd
	job windows.Handle
}

func newTree(cmd *exec.Cmd) *tree {
	cmd.SysProcAttr = &windows.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED}
	return &tree{cmd: cmd}
}

// OwnSession makes a process outlive the console that it was started from. It gets no signals.
func OwnSession() *windows.SysProcAttr {
	return &windows.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

// start starts the program within the job, before it can start another one.
func (t *tree) start() (err error) {
	if t.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE}}
	_, err = windows.SetInformationJobObject(t.job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = t.cmd.Start()
	}
	if err != nil {
		_ = windows.CloseHandle(t.job)
		return err
	}
	if err = t.join(); err != nil {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
		_ = windows.CloseHandle(t.job)
	}
	return err
}

// join puts the program, which is suspended, into the job, and lets it run.
func (t *tree) join() error {
	pid := uint32(t.cmd.Process.Pid)
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(p) //nolint:errcheck // it is only closed
	if err := windows.AssignProcessToJobObject(t.job, p); err != nil {
		return err
	}
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(threads) //nolint:errcheck // it is only closed
	e := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(threads, &e); err == nil; err = windows.Thread32Next(threads, &e) {
		if e.OwnerProcessID != pid {
			continue
		}
		h, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, e.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(h)
		_ = windows.CloseHandle(h)
		return err
	}
	return err
}

// stop ends the program at once: it cannot be asked.
func (t *tree) stop(<-chan struct{}) { t.end() }

func (t *tree) end() {
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
		_ = windows.CloseHandle(t.job)
		t.job = 0
	}
}

// marked finds none: the system ends a job with the process that made it.
func marked(string) []int { return nil }

func kill(int) {}
