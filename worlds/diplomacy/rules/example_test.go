package rules_test

import (
	"fmt"

	"parley/worlds/diplomacy/rules"
)

func Example() {
	r := rules.New()
	p := r.Start()
	var orders rules.Orders
	for _, text := range []string{"A PAR - BUR", "A Marseilles supports Paris to Burgundy", "F BRE - PAR"} {
		o, err := rules.Parse(r.Board, text)
		if err != nil {
			fmt.Println(err)
			return
		}
		orders[rules.France] = append(orders[rules.France], o)
	}
	out := r.Adjudicate(&p, &orders)
	for _, res := range out.Results[rules.France] {
		fmt.Println(res.Order.Text(r.Board), res.Codes(), res.Err)
	}
	next := r.Advance(&out.After)
	fmt.Println(next.Phase, r.UnitTexts(&next, rules.France))
	// Output:
	// A PAR - BUR [success] <nil>
	// A MAR S A PAR - BUR [success] <nil>
	// F BRE - PAR [illegal] F BRE does not touch PAR; it touches ENG, GAS, MAO, PIC
	// F1901M [A BUR A MAR F BRE]
}
