package jsongen

// leastHeight returns the nesting of the flattest value of n, from the known heights of its parts.
func (n *node) leastHeight() int {
	if n.never {
		return endless
	}
	if len(n.choices) > 0 {
		least := endless
		for _, c := range n.choices {
			least = min(least, c.height)
		}
		return least
	}
	if len(n.enum) > 0 || n.types&^(tArray|tObject) != 0 {
		return 0
	}
	least := endless
	if n.types&tObject != 0 {
		least = n.objectHeight()
	}
	if n.types&tArray != 0 {
		least = min(least, n.arrayHeight())
	}
	return least
}

func (n *node) objectHeight() int {
	h := 0
	for _, m := range n.members {
		if m.required {
			h = max(h, m.node.height)
		}
	}
	return up(h)
}

func (n *node) arrayHeight() int {
	h := 0
	for i := range min(n.minItems, len(n.prefix)) {
		h = max(h, n.prefix[i].height)
	}
	if n.minItems > len(n.prefix) && n.items != nil {
		h = max(h, n.items.height)
	}
	if n.contains != nil && n.minContains > 0 {
		h = max(h, n.contains.height)
	}
	return up(h)
}

func up(h int) int {
	if h >= endless {
		return endless
	}
	return h + 1
}
