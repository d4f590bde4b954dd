package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// farAway is the offset of the locked byte. Locks also block readers on Windows, and nobody reads
// there.
const farAway = 1 << 30

const noFollow = 0 // the system has no such flag

func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{OffsetHigh: farAway})
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return ErrHeld
	case err != nil:
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// identity returns an id that is the same for every name of a file on this machine, and how many names (hard links) the file
// has.
func identity(path string) (id string, links uint64, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", 0, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, 0, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	var info windows.ByHandleFileInformation
	err = errors.Join(windows.GetFileInformationByHandle(h, &info), windows.CloseHandle(h))
	return fmt.Sprintf("%x-%x-%x", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow), uint64(info.NumberOfLinks), err
}
