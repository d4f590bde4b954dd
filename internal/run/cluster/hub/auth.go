package hub

import (
	"crypto/subtle"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// auth decides who may connect, and what they may use.
type auth struct{ token string }

// Check accepts the hub's token, and tokens of runs.
func (a *auth) Check(c server.ClientAuthentication) bool {
	given := c.GetOpts().Token
	if equal(given, a.token) {
		return true
	}
	run := RunOf(given)
	if run == "" || !equal(given, WorkerToken(a.token, run)) {
		return false
	}
	c.RegisterUser(&server.User{Username: "worker of " + run, Permissions: permissions(run)})
	return true
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// IsRun reports whether a run can have this name: it has only letters and digits, so that it is one word of a subject.
func IsRun(name string) bool {
	return name != "" && strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// RunOf returns the run that a token of WorkerToken is for, or "" if it has another form.
func RunOf(token string) string {
	run, key, _ := strings.Cut(token, ".")
	if !IsRun(run) || len(key) != 2*keyBytes || strings.Trim(key, "0123456789abcdef") != "" {
		return ""
	}
	return run
}

// inbox is where answers to workers of a run go: in the common place, everybody could read those to others.
func inbox(run string) string { return "_INBOX_" + run }

// Options returns what a client with this token needs to connect, and the run that the token is for, or "".
func Options(token string) (options []nats.Option, run string) {
	options = []nats.Option{nats.Token(token)}
	if run = RunOf(token); run == "" {
		return options, ""
	}
	return append(options, nats.CustomInboxPrefix(inbox(run))), run
}

// permissions are those of a worker: of the subjects of its run, what it needs to read and append,
// and nothing that creates or deletes. It can be drained, and drains nobody.
func permissions(run string) *server.Permissions {
	log, lots := "P_"+run+"_LOG", "P_"+run+"_LOTS"
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			"p." + run + ".>",
			"$JS.API.INFO",
			"$JS.API.STREAM.INFO." + log, "$JS.API.STREAM.INFO." + lots, "$JS.API.STREAM.MSG.GET." + log,
			"$JS.API.CONSUMER.INFO." + lots + ".>", "$JS.API.CONSUMER.MSG.NEXT." + lots + ".>",
			"$JS.ACK." + lots + ".>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{inbox(run) + ".>", "p." + run + ".>", DrainSubject("*")}},
	}
}
