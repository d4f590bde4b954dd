package cli

import "parley/internal/cli/app"

// budgetFact says whether the budget is enough.
func budgetFact(e *app.Estimate) string {
	b := e.Budget
	if b == nil {
		return "none is set"
	}
	switch b.Covers {
	case "yes":
		return b.Limit.String() + coversText(e)
	case "no":
		return b.Limit.String() + " does not cover it: the run will stop, and can be resumed with more"
	case "maybe":
		return b.Limit.String() + " may not cover it: the run then stops, and can be resumed with more"
	default:
		return b.Limit.String() + " cannot be kept: a price is missing"
	}
}

// coversText says what a budget that is larger than the estimate covers.
func coversText(e *app.Estimate) string {
	switch {
	case e.CostMax == nil:
		return " covers the estimate; more could be needed, since answers are not bounded"
	case e.CostMax.Total.High > e.Budget.Limit.Dollars():
		return " covers the estimate; if every answer is as long as max_tokens, the run needs about " + dollars(e.CostMax.Total.High)
	default:
		return " covers it"
	}
}
