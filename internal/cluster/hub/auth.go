package hub

import (
	"crypto/subtle"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// auth decides who may connect, and what they may use.
type auth struct{ token string }

// Check accepts the hub's token, and tokens of runs.
func (a *auth) Check(c server.ClientAuthentication) bool {
	given := c.GetOpts().Token
	if equal(given, a.token) {
		return true
	}
	run, _, ok := strings.Cut(given, ".")
	if !ok || !plain(run) || !equal(given, WorkerToken(a.token, run)) {
		return false
	}
	c.RegisterUser(&server.User{Username: "worker of " + run, Permissions: permissions(run)})
	return true
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// plain reports whether a name of a run has only letters and digits, so that it is one word of a subject.
func plain(run string) bool {
	return run != "" && strings.Trim(run, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// permissions are those of a worker: of the subjects of its run, what it needs to read and append,
// and nothing that creates or deletes.
func permissions(run string) *server.Permissions {
	log, lots := "P_"+run+"_LOG", "P_"+run+"_LOTS"
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			"p." + run + ".>",
			"$JS.API.INFO",
			"$JS.API.STREAM.INFO." + log, "$JS.API.STREAM.INFO." + lots, "$JS.API.STREAM.MSG.GET." + log,
			"$JS.API.CONSUMER.INFO." + lots + ".>", "$JS.API.CONSUMER.MSG.NEXT." + lots + ".>",
			"$JS.ACK." + lots + ".>",
			// The two buckets of a run: its description, and its workers.
			"$JS.API.STREAM.INFO.KV_P_" + run, "$JS.API.DIRECT.GET.KV_P_" + run + ".>", "$JS.API.STREAM.MSG.GET.KV_P_" + run,
			"$KV.P_" + run + ".workers.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", "p." + run + ".>"}},
	}
}
