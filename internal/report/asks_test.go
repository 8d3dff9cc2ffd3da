package report

import (
	"errors"
	"testing"
	"time"
)

// costQuestions are ways to ask about costs without the word "costs" in front, with what is
// understood; "back" is asked back.
var costQuestions = []struct{ said, want string }{
	{"how much did we spend this month?", "this month"},
	{"How much have we spent so far?", "this month"},
	{"how much did we spend last week", "last week"},
	{"how much did I spend today?", "today for <@U0ANN>"},
	{"how much have I spent this week?", "this week for <@U0ANN>"},
	{"what did we spend yesterday?", "yesterday"},
	{"what have we spent since Monday?", "since 2026-11-16"},
	{"what did this thread cost?", "this month for this thread"},
	{"how much did this thread cost so far?", "this month for this thread"},
	{"what does this conversation cost us?", "this month for this thread"},
	{"who spent the most this month?", "this month by user"},
	{"who spends the most?", "this month by user"},
	{"which project costs the most?", "this month by project"},
	{"which model did we spend the most on last month?", "last month by model"},
	{"which threads were the most expensive this week?", "this week by thread"},
	{"what are our costs?", "this month"},
	{"what's our spend this quarter?", "this quarter"},
	{"what is the total cost for October?", "2026-10"},
	{"show me the costs by project", "this month by project"},
	{"show me my costs", "this month for <@U0ANN>"},
	{"give me last month's costs by user as csv", "last month by user with csv"},
	{"can you show us the spend per day this week?", "this week by day"},
	{"total spend this year", "this year"},
	{"our spending in 2025", "2025"},
	{"my spending", "this month for <@U0ANN>"},
	{"team costs last quarter", "last quarter for everyone"},
	{"how much did the whole team spend last month?", "last month for everyone"},
	{"how much did <@U1> spend in October?", "2026-10 for <@U1>"},
	{"how much did we spend on opus this week?", "this week for model claude-opus-4-5-20251101"},
	{"how much did we spend on project web?", "this month for project web"},
	{"how much did web cost in the last 30 days?", "last 30 days for project web"},
	{"what does this project cost us?", "this month for project web"},
	{"how much was spent in this channel?", "this month for <#C0ENG>"},
	{"how much money did we spend between 1 and 5 November?", "from 2026-11-01 to 2026-11-05"},
	{"what's the bill for this month?", "this month"},
	{"how many dollars did we burn today?", "today"},
	{"how many tokens did we use this week?", "this week"},
	{"token usage last month", "last month"},
	{"usage by model", "this month by model"},
	{"how expensive were we last month?", "last month"},
	{"how much did we use this month?", "this month"},
	{"how much have you cost us this month?", "this month"},
	{"how much does Claude cost us per month?", "this year by month"},
	{"did we spend more than last month?", "this month"},
	{"how much did we spend this month compared to last month?", "this month"},
	{"monthly costs", "this year by month"},
	{"daily spend last week please", "last week by day"},
	{"hey, what did we spend last month, broken down by user?", "last month by user"},
	{"I'd like to see what we spent this week", "this week"},
	{"can I see the costs of last month?", "last month"},
	{"how much $ did we spend?", "this month"},
	{"spending for the web project since Monday", "since 2026-11-16 for project web"},
	{"top 3 spenders", "this month by user"},
	{"who are our biggest spenders?", "this month by user"},
	{"why was yesterday so expensive?", "yesterday"},
	{"how much is left of the budget this month?", "back"},
	{"how much is left of the budget", "back"},
	{"what did grace spend", "back"},
	{"how much did Linus and Grace cost?", "back"},
	// These are asked back: one word is misspelt, or names what nobody knows.
	{"how much did we spned this month?", "back"},
	{"how much did we spend lsat month?", "back"},
	{"how much did bob spend last week?", "back"},
	{"how much did we spend on billing this month?", "back"},
	{"how much did we spend in the last fortnight?", "back"},
	{"how much did we spend last month and this month?", "back"},
	{"what did this cost?", "back"},
	{"how much will we spend next month?", "back"},
}

// lookAlikes are work, though they have a word for spending in them.
var lookAlikes = []string{
	"how much does the price function cost to run?",
	"what does costs.go do?",
	"reduce the cost of the query",
	"add a cost column to the report",
	"add a cost column to this month's report",
	"fix the costs test",
	"why did the cost test fail this week?",
	"how do we compute the cost this month?",
	"what does the cost parser do?",
	"where do we calculate costs?",
	"where is the spend computed?",
	"rename spend to cost",
	"the price on the product page is wrong",
	"show the price on the product page",
	"show the price",
	"what is the price?",
	"what is the price of a user?",
	"how much memory does this cost?",
	"how much does redis cost?",
	"why is the budget test so slow?",
	"what did the cost function return?",
	"how expensive is this query?",
	"make the build cost less",
	"cut our CI costs in half",
	"optimise the token usage of the prompt",
	"count the tokens in the input",
	"what are tokens used for in auth.go?",
	"how are tokens refreshed?",
	"write a budget module",
	"implement budget limits per project",
	"explain the budget code",
	"our bill has a rounding error in invoice.go",
	"the invoice total is off by one cent",
	"charge the card when the trial ends",
	"how do we charge customers?",
	"which function charges the card?",
	"what happens when a user pays?",
	"pay attention to the failing test",
	"cost-benefit analysis of the cache",
	"use tabs",
	"use the API of last week",
	"how much time do we spend in GC?",
	"what does `spend()` return?",
	"refactor the spending report",
	"document the usage of the CLI",
	"print usage when no arguments are given",
	"who calls Spend()?",
	"spend some time on the flaky test today",
	"send the report to us",
	"how do I use this?",
	"what do we use for logging?",
	"split the bill by user",
	"expense approvals are broken, look into it",
	"how much did we spend this month?\nand fix the test",
	"how much is 1 + 1?",
	"price per month",
}

func asker(t testing.TB) Context {
	o := saturday(t)
	o.Project, o.Channel = "web", "C0ENG"
	return o
}

func TestQuestionsAboutCostsAreRecognised(t *testing.T) {
	t.Parallel()
	o := asker(t)
	answered := 0
	for _, c := range costQuestions {
		if !Asks(c.said, o) {
			t.Errorf("%q would go to the model", c.said)
			continue
		}
		q, err := Parse(c.said, o)
		switch {
		case err == nil && q.String() == c.want:
			answered++
		case err != nil && c.want == "back":
			if wrong, ok := errors.AsType[*ParseError](err); !ok || len(wrong.Nearest) == 0 {
				t.Errorf("%q is asked back with nothing to choose from: %v", c.said, err)
			}
		default:
			t.Errorf("%q is %q (%v), want %q", c.said, q, err, c.want)
		}
	}
	t.Logf("%d of %d are answered from the ledger, the others asked back", answered, len(costQuestions))
	if answered < 40 {
		t.Errorf("only %d are answered", answered)
	}
}

func TestWhatLooksLikeACostQuestionIsWork(t *testing.T) {
	t.Parallel()
	for _, o := range []Context{asker(t), {Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Asker: "U0ANN", Projects: []string{"web"}, Models: []string{}}} {
		for _, said := range lookAlikes {
			if Asks(said, o) {
				q, err := Parse(said, o)
				t.Errorf("%q would not go to the model: %s, %v", said, q, err)
			}
		}
	}
}
