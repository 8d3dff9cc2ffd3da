package chat

import "testing"

// Where work is done is said at the beginning and at the end of a message alone, and nothing else
// of it is lost.
func TestWhereAMessagesWorkIsDone(t *testing.T) {
	t.Parallel()
	projects := []string{"web", "api-v2"}
	for text, want := range map[string]aim{
		"in web: fix the tests":                            {text: "fix the tests", project: "web"},
		" In API-V2: fix\n\n  the tests ":                  {text: "fix\n\n  the tests", project: "api-v2"},
		"in wbe: fix the tests":                            {text: "fix the tests", project: "wbe"}, // which is refused
		"in short: it fails":                               {text: "in short: it fails"},
		"in web:fix":                                       {text: "in web:fix"},
		"repo=web branch=release/2.1 fix the tests":        {text: "fix the tests", project: "web", branch: "release/2.1"},
		"fix the tests, repo=web\nbranch=main.":            {text: "fix the tests,", project: "web", branch: "main"},
		"in web: branch=main model=opus fix it":            {text: "model=opus fix it", project: "web", branch: "main"},
		"fix it branch=main model=opus":                    {text: "fix it model=opus", branch: "main"},
		"fix it model=opus branch=main":                    {text: "fix it model=opus", branch: "main"},
		"repo=nothing fix it":                              {text: "fix it", project: "nothing"},
		"call it with branch=main repo=web and see":        {text: "call it with branch=main repo=web and see"},
		"run `make repo=web branch=main`":                  {text: "run `make repo=web branch=main`"},
		"model=opus fix it":                                {text: "model=opus fix it"},
		"repo=web":                                         {project: "web"},
		"branch=":                                          {text: "branch="},
		"in web: why is `in api-v2: x` said by branch=a b": {text: "why is `in api-v2: x` said by branch=a b", project: "web"},
	} {
		got := readAim(text, projects)
		if got.text != want.text || got.project != want.project || got.branch != want.branch {
			t.Errorf("%q: %+v\nwant %+v", text, got, want)
		}
	}
}

func TestATopicNamesAProject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Builds\ndeckhand: API-v2 \nRests": "api-v2", "deckhand: secret\ndeckhand: web": "web", "ask deckhand: web is down": "", "deckhand: web, please": "", "": "",
	} {
		if got := projectInTopic(text, []string{"web", "api-v2"}); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}
