package scenario

import "embed"

// The example is a plan and a scenario folder that you can read and run.
//
//go:embed example
var example embed.FS

// examplePlan returns the plan file of the example.
func examplePlan() string {
	b, err := example.ReadFile("example/plan.yaml")
	if err != nil {
		return "" // it is embedded
	}
	return string(b)
}

// exampleFiles returns the other files, by name.
func exampleFiles() map[string]string {
	files := map[string]string{}
	collect("", files)
	delete(files, "plan.yaml")
	return files
}

func collect(dir string, files map[string]string) {
	entries, err := example.ReadDir("example" + dir)
	if err != nil {
		return // it is embedded
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			collect(name, files)
		} else if b, err := example.ReadFile("example" + name); err == nil {
			files[name[1:]] = string(b)
		}
	}
}
