//go:build !unix

package cli

func workerMain() int { return 1 }
