package dialect_test

import (
	"syscall"
	"time"
)

func usage() (u syscall.Rusage) {
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS returns the peak memory of this process, in bytes.
func peakRSS() int64 { return usage().Maxrss << 10 }
