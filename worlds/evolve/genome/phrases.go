package genome

// Phrases returns spans of every role that are useful for many problems. Mutations draw from them.
func Phrases() []Span {
	var all []Span
	for _, p := range []struct {
		role  Role
		texts []string
	}{
		{Instructions, []string{
			"Work through the problem step by step.",
			"Read the question twice before you begin.",
			"Say in your own words what is asked.",
			"You are a careful and patient problem solver.",
			"Ignore anything that is irrelevant to the question.",
			"Be brief.",
			"Show your work.",
			"Keep a running total as you go.",
			"Take what happens in the order in which it happens.",
			"Write an equation before you calculate.",
			"Name the unit of every number.",
			"Estimate the result roughly before you calculate it.",
			"Explain your reasoning to somebody who is new to the subject.",
			"Do not guess.",
			"Look at the problem from two sides.",
		}},
		{Steps, []string{
			"- List the facts that are given.",
			"- Calculate one step at a time.",
			"- Check the result against the question.",
			"- Write down what is known and what is wanted.",
			"- Draw a small table where it helps.",
			"- Verify each calculation by doing it the other way round.",
		}},
		{Format, []string{
			"End with the final answer on a line of its own after ####.",
			"Close with the words Answer: and the answer as a number.",
			"Give the final answer only once, at the end.",
		}},
	} {
		for _, t := range p.texts {
			all = append(all, Span{Role: p.role, Text: t})
		}
	}
	return all
}

// Seeds returns the prompts to begin with if a plan file has none.
func Seeds() []string {
	return []string{
		"Solve the problem.",
		"Let us go through this slowly and come to the right result.",
		"You are good at mathematics. Answer the question.",
		"Find out what is asked, then work it out.\n- Write down what is known and what is wanted.",
		"Break the problem into parts and solve each part.",
		"Think about what happens first and what happens later.\nGive the final answer only once, at the end.",
		"Be brief. Give the result.",
		"Explain your reasoning, then state the answer as a number at the end.",
	}
}
