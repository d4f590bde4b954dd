package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/world"
)

// disk has files in memory. YAML files contain JSON, since worlds do not parse YAML.
type disk map[string]string

func (d disk) Match(string) []string { return nil }

func (d disk) Text(name string) (string, error) { return d[name], nil }

func (d disk) YAML(name string, v any) (world.Document, error) {
	return page(name), json.Unmarshal([]byte(d[name]), v)
}

func (d disk) Rows(name string) iter.Seq2[json.RawMessage, error] {
	text, ok := d[name]
	if !ok {
		return func(yield func(json.RawMessage, error) bool) { yield(nil, errors.New("there is no "+name)) }
	}
	return func(yield func(json.RawMessage, error) bool) {
		for line := range strings.Lines(text) {
			if !yield(json.RawMessage(strings.TrimSpace(line)), nil) {
				return
			}
		}
	}
}

type page string

func (p page) Place(key string) string { return string(p) + ": " + key }

func (p page) Fault(key, format string, args ...any) error {
	return errors.New(p.Place(key) + ": " + fmt.Sprintf(format, args...))
}

// TestTasks checks that there are rows times env_num episodes, and that the groups of two entries of one
// environment have different names.
func TestTasks(t *testing.T) {
	t.Parallel()
	files := disk{
		"envs/all.yaml": `{"environments":[
			{"env_name":"maze","env_num":2,"env_params":{"size":5}},
			{"env_name":"qa","dataset":"q.jsonl","env_num":3,"env_params":{"k":1}},
			{"env_name":"qa","dataset":"q.jsonl","dataset_load_mode":"parquet_row_ref","env_image":"img"}]}`,
		"envs/q.jsonl": "{\"q\":\"1\"}\n{\"q\":\"2\"}\n",
	}
	p := Definition{}.Defaults()
	p.Environments = "envs/all.yaml"
	advice, err := Definition{}.Load(p, files)
	if err != nil || len(advice) != 1 || !strings.Contains(advice[0], "env_image") {
		t.Fatal(advice, err)
	}
	specs := episodes(t, p, world.Spec{Kind: "rollout", Lineup: map[string]string{"agent": "x"}})
	var got []string
	for _, s := range specs {
		var one Params
		mustRead(s.Params, &one)
		if _, err := (Definition{}).World(&one, nil); err != nil || one.Tasks != "" {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s %d %d %s", one.Task.Group, one.Task.Index, s.Deal, one.EnvParams))
	}
	want := []string{
		`maze:1 1 0 {"size":5}`, `maze:1 1 0 {"size":5}`,
		`qa:1 1 1 {"dataset":{"q":"1"},"k":1}`, `qa:1 1 1 {"dataset":{"q":"1"},"k":1}`, `qa:1 1 1 {"dataset":{"q":"1"},"k":1}`,
		`qa:2 2 2 {"dataset":{"q":"2"},"k":1}`, `qa:2 2 2 {"dataset":{"q":"2"},"k":1}`, `qa:2 2 2 {"dataset":{"q":"2"},"k":1}`,
		`qa.2:1 1 3 {"dataset":{"path":"q.jsonl","row":0}}`, `qa.2:2 2 4 {"dataset":{"path":"q.jsonl","row":1}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The next epoch: other groups, other deals, and the group size that the plan asks for.
	p.Group = 1
	again := episodes(t, p, world.Spec{Deal: 1})
	var one Params
	mustRead(again[0].Params, &one)
	if len(again) != 5 || again[0].Deal != 5 || one.Task.Group != "maze:1/2" || one.Task.Index != 6 {
		t.Errorf("%d episodes, deal %d, task %+v", len(again), again[0].Deal, one.Task)
	}
}

func episodes(t *testing.T, p *Params, cell world.Spec) (specs []world.Spec) {
	t.Helper()
	made, err := Definition{}.Plan(p, cell, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range made.Next(nil).All() {
		specs = append(specs, s)
	}
	return specs
}

func TestGroupsWithoutAFile(t *testing.T) {
	t.Parallel()
	p := Definition{}.Defaults()
	p.Group = 3
	specs := episodes(t, p, world.Spec{Deal: 7, Cell: "c", Lineup: map[string]string{"agent": "x"}})
	if len(specs) != 3 || specs[0].Deal != 7 || specs[2].Deal != 7 || specs[2].Cell != "c" {
		t.Errorf("%v", specs)
	}
}

// TestUniform checks that deals are the same if the kind reports so, and that it does not with tasks.
func TestUniform(t *testing.T) {
	t.Parallel()
	p := Definition{}.Defaults()
	p.Group = 3
	first, later := episodes(t, p, world.Spec{Deal: 0}), episodes(t, p, world.Spec{Deal: 8})
	for i := range later {
		later[i].Deal -= 8
	}
	if !(Definition{}).Uniform(p) || !reflect.DeepEqual(first, later) {
		t.Errorf("%v, %v", first, later)
	}
	tasks := *p
	tasks.Tasks = "x"
	if (Definition{}).Uniform(&tasks) {
		t.Error("tasks depend on the deal")
	}
}

// TestBadTasks checks that every error says where the mistake is.
func TestBadTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{`{"environments":[]}`, "f.yaml: environments: lists no task"},
		{`{"environments":[{"env_name":""}]}`, "environments[0].env_name"},
		{`{"environments":[{"env_name":"../x"}]}`, "environments[0].env_name"},
		{`{"environments":[{"env_name":"a","env_num":-1}]}`, "environments[0].env_num: -1: want 1 to"},
		{`{"environments":[{"env_name":"a","env_params":3}]}`, "environments[0].env_params"},
		{`{"environments":[{"env_name":"a"},{"env_name":"b","dataset":"x.jsonl"}]}`, "environments[1].dataset: there is no x.jsonl"},
		{`{`, "unexpected end"},
	} {
		p := Definition{}.Defaults()
		p.Environments = "f.yaml"
		if _, err := (Definition{}).Load(p, disk{"f.yaml": c.file}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
	for _, tasks := range []string{"x", "{}", `{"env":"a","params":{},"group":"g","size":0}`} {
		p := Definition{}.Defaults()
		p.Tasks = tasks
		if _, err := (Definition{}).Plan(p, world.Spec{}, 0); err == nil || !strings.Contains(err.Error(), "params.tasks: line 1") {
			t.Errorf("%s: %v", tasks, err)
		}
	}
}

func TestBadParams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ params, want string }{
		{`{"env":"a/b"}`, "params.env"},
		{`{"env_params":[1]}`, "params.env_params"},
		{`{"env_params":null}`, "params.env_params"},
		{`{"protocol":"v9"}`, "params.protocol"},
		{`{"protocol":"openenv"}`, "params.servers"},
		{`{"servers":["127.0.0.1:36663"]}`, "params.servers[0]: \"127.0.0.1:36663\": want an address that begins with http://"},
		{`{"servers":["ws://x"]}`, "params.servers[0]"},
		{`{"servers":["http://user:pw@x"]}`, "plain address"},
		{`{"servers":["http://x","http://x"]}`, "params.servers[1]: http://x is listed twice"},
		{`{"max_steps":0}`, "params.max_steps: wants 1 to 100000, found 0"},
		{`{"message_cut":200000}`, "params.message_cut"},
		{`{"seats":[]}`, "params.seats"},
		{`{"seats":["a","a"]}`, "params.seats[1]: a is listed twice"},
		{`{"seats":["a b"]}`, "params.seats[0]"},
		{`{"group":-1}`, "params.group"},
		{`{"retries":-1}`, "params.retries"},
		{`{"pool":{"per_server":-1}}`, "params.pool.per_server"},
		{`{"pool":{"timeout":"0s"}}`, "params.pool.timeout: wants 1ms to 24h, found 0s"},
		{`{"refill":{"useful":9,"max_groups":8}}`, "params.refill.max_groups: 8 is less than refill.useful, 9"},
		{`{"refill":{"advance":2}}`, "params.refill.advance"},
	} {
		kind := world.Define(Definition{})
		p, err := kind.Read([]byte(c.params))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.Seats(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.params, err, c.want)
		}
	}
}

// TestRefillPlan checks the specs of a refill: without a file, each group is a new deal of the environment, and with one
// it is a task, which has another name when it is played again.
func TestRefillPlan(t *testing.T) {
	t.Parallel()
	p := Definition{}.Defaults()
	p.Refill.Useful, p.Group = 2, 2
	names := func(specs world.Specs) (all []string) {
		for _, s := range specs.All() {
			g, err := Definition{}.TrainingGroup(s)
			name := g.Name
			var one Params
			mustRead(s.Params, &one)
			if err != nil || one.Refill.Useful != 0 || one.Tasks != "" {
				t.Error(err, one)
			}
			all = append(all, name)
		}
		return all
	}
	for tasks, want := range map[string][2]string{
		"": {"arithmetic:1 arithmetic:1 arithmetic:2 arithmetic:2", "arithmetic:3 arithmetic:3 arithmetic:4 arithmetic:4"},
		`{"env":"maze","params":{},"group":"maze:1","size":3}`: {"maze:1 maze:1 maze:1/2 maze:1/2", "maze:1/3 maze:1/3 maze:1/4 maze:1/4"},
	} {
		p.Tasks = tasks
		plan, err := Definition{}.Plan(p, world.Spec{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(plan.Next(nil)), " "); got != want[0] {
			t.Errorf("%s, want %s", got, want[0])
		}
		if got := strings.Join(names(plan.Next(make([]world.Played, 4))), " "); got != want[1] {
			t.Errorf("%s, want %s", got, want[1])
		}
	}
	parts, err := Definition{}.Forecast(p, world.Spec{}, 1)
	if err != nil || len(parts) != 1 || parts[0].Low != 4 || parts[0].High != 16 || (Definition{}).Uniform(p) {
		t.Errorf("%+v, %v", parts, err)
	}
	if _, err := (Definition{}).Plan(p, world.Spec{Deal: 1}, 1); err == nil || !strings.Contains(err.Error(), "episodes must be 1") {
		t.Error(err)
	}
	p.Group = 1
	if _, err := (Definition{}).Plan(p, world.Spec{}, 1); err == nil || !strings.Contains(err.Error(), "at least 2 episodes") {
		t.Error(err)
	}
}
