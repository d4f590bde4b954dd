package world

import (
	"encoding/json"
	"unicode/utf8"
)

// Work is what a program gets to work on: files in a new folder, and limits. When it has ended, with everything that it
// started, a check can run on a copy of what is in the folder, where the program cannot reach.
type Work struct {
	// Name names the work in errors: the task.
	Name string
	// Files are what is in the program's folder when it starts.
	Files []File
	// Env are variables for the program and the check.
	Env map[string]string
	// Where says where both run. Default: as processes of this machine.
	Where Where
	// Timeout ends the program. 0: there is none.
	Timeout Duration
	// MaxCalls and MaxTokens limit what the program may ask its model; 0: no limit.
	MaxCalls, MaxTokens int
	// MaxOutput is how many bytes of each output, and of the texts of changed files, are kept. 0: 64 KiB.
	MaxOutput int
	// MaxResult is how many bytes of files a program may leave. 0: 256 MiB.
	MaxResult int64
	// AtOnce is how many programs may work at the same time. 0: as many as this machine has processors.
	AtOnce int
	// Solution is what the program oracle runs instead of solving anything itself. Nil: there is none.
	Solution *Script
	// Check checks the result. Nil: nothing does.
	Check *Script
}

// File is a regular file. JSON has its data as a text if it is one.
type File struct {
	// Path is relative to its folder, with slashes, and leads nowhere else: see part.LocalPath.
	Path string
	Data []byte
	// Exec makes it executable.
	Exec bool
}

type fileJSON struct {
	Path string  `json:"path"`
	Text *string `json:"text,omitempty"`
	Data []byte  `json:"data,omitempty"`
	Exec bool    `json:"exec,omitempty"`
}

// MarshalJSON writes what UnmarshalJSON reads.
func (f File) MarshalJSON() ([]byte, error) {
	out := fileJSON{Path: f.Path, Data: f.Data, Exec: f.Exec}
	if text := string(f.Data); utf8.ValidString(text) {
		out.Text, out.Data = &text, nil
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads a file.
func (f *File) UnmarshalJSON(b []byte) error {
	var in fileJSON
	if err := DecodeStrict(b, &in); err != nil {
		return err
	}
	*f = File{in.Path, in.Data, in.Exec}
	if in.Text != nil {
		f.Data = []byte(*in.Text)
	}
	return nil
}

// Script is a command with files of its own, which are beside the result only while it runs.
type Script struct {
	Files   []File            `json:"files,omitempty"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	Timeout Duration          `json:"timeout,omitempty"` // 0: 10 minutes
	// Reward says that the command leaves its reward in a file, as Harbor's verifiers do: reward.json, or reward.txt, in
	// the folder /logs/verifier. Otherwise its output and its exit code are the reward: see Checked.
	Reward bool `json:"reward,omitempty"`
}

// Where says where a program and the check of its result run.
type Where struct {
	// Engine is podman or docker, or empty: they are processes of this machine.
	Engine string
	// Wrap is a command that runs what follows it, instead of an engine, with the placeholders {folder}, {home}, {name}, {network},
	// {image}, {workdir}, {tests} and {logs}.
	Wrap []string
	// Image is the image of the containers, or Build are the files that it is built from.
	Image string
	Build []File
	// Workdir is where the program's folder is in a container, and how files of the work name it. Default: /app.
	Workdir string
	Network string // of containers: host, gateway or none
	// CPUs and Memory in MiB limit a container; 0: no limit.
	CPUs, Memory float64
}

// Done is what a program did.
type Done struct {
	Exit     int     `json:"exit"` // its exit code; -1: it was ended
	Seconds  float64 `json:"seconds"`
	TimedOut bool    `json:"timed_out,omitempty"`
	// Limit is the limit of its session that was reached: calls, tokens, episode budget or budget.
	Limit string `json:"limit,omitempty"`
	// Stdout and Stderr are the beginning and the end of what it wrote. They are hostile.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Changed are the files that differ from what it was given, the first 200 of them.
	Changed []Change `json:"changed,omitempty"`
	More    int      `json:"more,omitempty"`  // changed files that are not listed
	Check   *Checked `json:"check,omitempty"` // nil: nothing was checked
	// Calls and the tokens are what its session asked.
	Calls  int `json:"calls,omitempty"`
	Input  int `json:"input,omitempty"`
	Output int `json:"output,omitempty"`
}

// Change is a file that a program changed. Its name and its text are hostile.
type Change struct {
	Path string `json:"path"`
	What string `json:"what"` // added, changed, removed; or left out, of what is no regular file or leads out of the folder
	Size int64  `json:"size,omitempty"`
	Text string `json:"text,omitempty"` // its beginning, if it is text
}

// Checked is the result of a check.
type Checked struct {
	// Rewards are numbers by name. A check without a reward file has the reward "reward": the number that its last line of
	// output consists of, or, if that is no number, 1 if it exits with 0, and 0 otherwise.
	Rewards map[string]float64 `json:"rewards,omitempty"`
	// Failed says why there are no rewards: the check is broken, and not the result.
	Failed   string  `json:"failed,omitempty"`
	Exit     int     `json:"exit"`
	Seconds  float64 `json:"seconds"`
	TimedOut bool    `json:"timed_out,omitempty"`
	Stdout   string  `json:"stdout,omitempty"`
	Stderr   string  `json:"stderr,omitempty"`
}
