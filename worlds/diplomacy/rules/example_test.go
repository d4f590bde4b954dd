package rules_test

import (
	"fmt"

	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

func Example() {
	r := rules.New()
	p := r.Start()
	var orders rules.Orders
	for _, text := range []string{"A PAR - BUR", "A Marseilles supports Paris to Burgundy", "F BRE - PAR"} {
		o, err := order.Parse(r.Board, text)
		if err != nil {
			fmt.Println(err)
			return
		}
		orders[board.France] = append(orders[board.France], o)
	}
	out := r.Adjudicate(&p, &orders)
	for _, res := range out.Results[board.France] {
		fmt.Println(res.Order.Text(r.Board), res.Codes(), res.Err)
	}
	next := r.Advance(&out.After)
	fmt.Println(next.Phase, r.UnitTexts(&next, board.France))
	// Output:
	// A PAR - BUR [success] <nil>
	// A MAR S A PAR - BUR [success] <nil>
	// F BRE - PAR [illegal] F BRE does not touch PAR; it touches ENG, GAS, MAO, PIC
	// F1901M [A BUR A MAR F BRE]
}
