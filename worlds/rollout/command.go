// Part command has the commands of rollouts: env serves environments, trainer serves a run to trainers, and
// trajectories writes training data.
//
// It is not for the servers themselves (packages server and trainer), or for the rows (package trajectory).

package rollout

import "parley/world/program"

// kindName is the kind of runs that the commands accept.
const kindName = "rollout"

// commands lists the commands.
func commands() []program.Command {
	return []program.Command{
		{Name: "env", Doc: "List the built-in environments, or serve them over HTTP.", Verb: &environments{}},
		{Name: "trainer", Doc: "Serve rollouts to a trainer over HTTP.", Verb: &commandTraining{}},
		{Name: "trajectories", Doc: "Write the training data of a run of rollouts.", Verb: &trajectories{}},
	}
}
