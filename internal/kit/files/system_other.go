//go:build !unix

package files

import "io/fs"

// withoutWaiting is 0: opening a file never waits.
const withoutWaiting = 0

// Private reports whether a file is regular. The system says nothing else about who can read it.
func Private(info fs.FileInfo) bool { return info.Mode().IsRegular() }

// SyncFolder does nothing: the system makes names durable.
func SyncFolder(string) error { return nil }
