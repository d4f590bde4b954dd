package world

import (
	"context"
	"encoding/json"
	"time"
)

// Runs plays plans into run files, as the command run does. It is also a journal.Opener, which reads run files. A
// server that plays a plan for its clients is written with it.
type Runs interface {
	// Open reads a plan file and finds the run file that the plan is played into. The user is asked now where the keys may
	// go that the plan needs, and never later: who starts the run may be somebody else.
	Open(ctx context.Context, flags PlayFlags) (Run, error)
}

// PlayFlags are the flags of a command that plays a plan: embed it in a Verb.
type PlayFlags struct {
	Plan        string         `arg:"" placeholder:"PLAN" help:"The plan file."`
	Out         string         `placeholder:"FILE" help:"The run file. If it exists, the run is resumed. Default: next to the plan, with the same name and the ending .parley."`
	Unreachable *time.Duration `placeholder:"DURATION" help:"How long to wait for a provider that cannot be reached, such as one that is restarting; 0 fails at once. Default: the plan's, or 10m."`
	TrustFlags
	ReachFlags
}

// TrustFlags allow keys to go where a plan sends them.
type TrustFlags struct {
	Trust []string `sep:"none" placeholder:"VAR=HOST" help:"Allow this environment variable to be sent to this host without asking, such as LAB_KEY=https://lab.example:8443. Repeatable."`
}

// ReachFlags allow a plan to name files outside its folder.
type ReachFlags struct {
	AllowFiles []string `sep:"none" placeholder:"DIR" help:"Allow the plan, and the files that it names, to use files in this folder. Without it, all files must be in the plan's folder. Repeatable."`
}

// Run is a plan with the run file that it is played into.
type Run interface {
	// File returns the path of the run file.
	File() string
	// Plan says what the plan file asks for.
	Plan() PlanSummary
	// Recorded says what the run file holds now.
	Recorded(ctx context.Context) (RecordedRun, error)
	// Prepare makes the plan ready to be played. overrides change it, as "episodes=3" or "params.group=4"; they may be a
	// client's, so they can name no file that the plan file does not name. Without any, a run that the file holds goes on
	// as it was recorded.
	Prepare(ctx context.Context, overrides ...string) (Prepared, error)
}

// PlanSummary says what a plan asks for.
type PlanSummary struct {
	Kind     string
	Seed     uint64
	Episodes int
	Params   json.RawMessage // with all defaults
}

// RecordedRun says what a run file holds.
type RecordedRun struct {
	Kind     string // of the run; empty: the file holds none, or does not exist
	Complete bool   // nothing is left to play
}

// Prepared is a plan that is ready to be played.
type Prepared struct {
	PlanSummary
	// Play plays until the run is complete, or until drain is done and what has begun has ended; ctx aborts. It calls
	// begun when play begins, and ended whenever an episode has ended and its outcome is durable. An error without a call
	// of begun means that nothing was played.
	Play func(ctx, drain context.Context, begun, ended func()) (Ending, error)
}

// Ending is how playing a plan ended.
type Ending struct {
	// State is complete, stopped or failed. One that was stopped can be resumed.
	State string
	// Reason is why it stopped or failed.
	Reason string
}
