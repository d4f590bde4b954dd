package cli

// idleBytes is the size of a buffer that is never touched and so takes no memory. It makes the garbage collector run
// less often while little else is in use: frequent collections take a quarter of the time of a run whose calls are
// answered at once.
const idleBytes = 64 << 20

// IdleBuffer returns a buffer to be kept while the program runs: the garbage collector waits until at least as much
// memory as its size is allocated. It is empty if the user sets GOGC or GOMEMLIMIT.
func IdleBuffer(env func(string) (string, bool)) []byte {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if value, ok := env(name); ok && value != "" {
			return nil
		}
	}
	return make([]byte, idleBytes)
}
