package dialect_test

import (
	"syscall"
	"time"
)

func usage() (u syscall.Rusage) {
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS is the most memory this process ever held, in bytes.
func peakRSS() int64 { return usage().Maxrss << 10 }
