package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
)

// parse decodes JSON as the Web API does. %N stands for N times the letter x.
func parse(t testing.TB, raw string) []any {
	t.Helper()
	for {
		at := strings.IndexByte(raw, '%')
		if at < 0 {
			break
		}
		n := 0
		if _, err := fmt.Sscanf(raw[at+1:], "%d", &n); err != nil {
			t.Fatal(err)
		}
		raw = raw[:at] + strings.Repeat("x", n) + raw[at+1+len(fmt.Sprint(n)):]
	}
	var list []any
	if err := decodeJSON([]byte(raw), &list); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return list
}

func nobody(string) bool { return false }

func many(n int, item string) string { return "[" + strings.Join(repeat(n, item), ",") + "]" }

func repeat(n int, item string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
	}
	return out
}

func TestBlocksThatSlackTakes(t *testing.T) {
	t.Parallel()
	const text = `{"type":"plain_text","text":"x"}`
	const opt = `{"text":{"type":"plain_text","text":"x"},"value":"v#"}`
	for name, c := range map[string]struct {
		on  surface
		raw string
	}{
		"section":        {surfaceMessage, `[{"type":"section","text":{"type":"mrkdwn","text":"%3000","verbatim":true},"fields":` + many(10, `{"type":"plain_text","text":"%2000","emoji":true}`) + `,"expand":true}]`},
		"context":        {surfaceMessage, `[{"type":"context","elements":` + many(10, `{"type":"mrkdwn","text":"x"}`) + `}]`},
		"context image":  {surfaceMessage, `[{"type":"context","elements":[{"type":"image","image_url":"https://x.example/a.png","alt_text":"a"}]}]`},
		"actions":        {surfaceMessage, `[{"type":"actions","elements":` + many(25, `{"type":"button","action_id":"a#","text":{"type":"plain_text","text":"%75"},"value":"%2000"}`) + `}]`},
		"fifty":          {surfaceMessage, many(50, `{"type":"divider"}`)},
		"hundred":        {surfaceHome, many(100, `{"type":"divider"}`)},
		"header":         {surfaceMessage, `[{"type":"header","text":{"type":"plain_text","text":"%150"}}]`},
		"image":          {surfaceModal, `[{"type":"image","image_url":"https://x.example/a.png","alt_text":"a","title":` + text + `}]`},
		"markdown":       {surfaceMessage, `[{"type":"markdown","text":"%12000"}]`},
		"table":          {surfaceMessage, `[{"type":"table","rows":` + many(100, many(20, `{"type":"raw_text","text":"x"}`)) + `,"column_settings":[null,{"align":"right","is_wrapped":true}]}]`},
		"rich text":      {surfaceMessage, `[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"},{"type":"user","user_id":"U1"}]}]},{"type":"rich_text_preformatted","elements":[{"type":"text","text":"x"}]}]}]`},
		"task card":      {surfaceMessage, `[{"type":"task_card","task_id":"1","title":"%256","status":"in_progress","sources":[{"type":"url","url":"https://x.example","text":"x"}]}]`},
		"plan":           {surfaceMessage, `[{"type":"plan","title":"x","tasks":[{"type":"task_card","task_id":"1","title":"x"}]}]`},
		"pie":            {surfaceMessage, `[{"type":"data_visualization","title":"%50","chart":{"type":"pie","segments":` + many(20, `{"label":"%20","value":1.5}`) + `}}]`},
		"line":           {surfaceMessage, `[{"type":"data_visualization","title":"x","chart":{"type":"line","series":` + many(6, `{"name":"s#","data":[{"label":"a","value":1}]}`) + `,"axis_config":{"categories":["a"],"x_label":"x"}}}]`},
		"select":         {surfaceMessage, `[{"type":"actions","elements":[{"type":"static_select","options":` + many(100, opt) + `,"placeholder":{"type":"plain_text","text":"%150"}}]}]`},
		"groups":         {surfaceModal, `[{"type":"input","label":` + text + `,"element":{"type":"multi_static_select","option_groups":[{"label":` + text + `,"options":[` + opt + `]}],"max_selected_items":2}}]`},
		"choices":        {surfaceModal, `[{"type":"input","label":` + text + `,"element":{"type":"checkboxes","options":` + many(10, `{"text":{"type":"mrkdwn","text":"x"},"value":"v#","description":{"type":"mrkdwn","text":"y"}}`) + `,"initial_options":[{"text":{"type":"mrkdwn","text":"x"},"value":"v3"}]}}]`},
		"text input":     {surfaceModal, `[{"type":"input","label":` + text + `,"hint":` + text + `,"optional":true,"dispatch_action":true,"element":{"type":"plain_text_input","multiline":true,"min_length":1,"max_length":3000,"initial_value":"%3000","dispatch_action_config":{"trigger_actions_on":["on_enter_pressed"]},"focus_on_load":true}}]`},
		"pickers":        {surfaceModal, `[{"type":"actions","elements":[{"type":"datepicker","initial_date":"2025-01-31"},{"type":"timepicker","initial_time":"23:59"},{"type":"datetimepicker","initial_date_time":1732145678}]}]`},
		"confirm":        {surfaceMessage, `[{"type":"section","text":` + text + `,"accessory":{"type":"button","text":` + text + `,"style":"danger","confirm":{"title":{"type":"plain_text","text":"%100"},"text":{"type":"mrkdwn","text":"%300"},"confirm":{"type":"plain_text","text":"%30"},"deny":{"type":"plain_text","text":"%30"},"style":"danger"}}}]`},
		"feedback":       {surfaceMessage, `[{"type":"context_actions","elements":[{"type":"feedback_buttons","positive_button":{"text":` + text + `,"value":"1"},"negative_button":{"text":` + text + `,"value":"0"}},{"type":"icon_button","icon":"trash","text":` + text + `}]}]`},
		"streamed":       {surfaceStream, `[{"type":"alert","text":` + text + `,"level":"error"},{"type":"carousel","elements":[{"type":"card","title":` + text + `,"actions":[{"type":"button","text":` + text + `}]}]}]`},
		"container":      {surfaceMessage, `[{"type":"container","title":` + text + `,"is_collapsible":true,"child_blocks":[{"type":"actions","elements":[{"type":"button","text":` + text + `}]}]}]`},
		"data table":     {surfaceMessage, `[{"type":"data_table","caption":"x","rows":[[{"type":"raw_text","text":"a"}],[{"type":"raw_number","value":1.5}]]}]`},
		"video":          {surfaceMessage, `[{"type":"video","video_url":"https://x.example/v","thumbnail_url":"https://x.example/t","alt_text":"a","title":` + text + `}]`},
		"file":           {surfaceMessage, `[{"type":"file","external_id":"A","source":"remote"}]`},
		"people selects": {surfaceModal, `[{"type":"actions","elements":[{"type":"users_select","initial_user":"U1"},{"type":"multi_users_select","initial_users":["U1"]},{"type":"conversations_select","filter":{"include":["im"]},"default_to_current_conversation":true},{"type":"channels_select","response_url_enabled":true},{"type":"external_select","min_query_length":0}]}]`},
		"other inputs":   {surfaceModal, many(1, `{"type":"input","label":`+text+`,"element":{"type":"number_input","is_decimal_allowed":false,"min_value":"1"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problems := checkBlocks(parse(t, c.raw), c.on, "/blocks", nobody)
			if len(problems) > 0 {
				t.Fatal(strings.Join(problems, "\n"))
			}
			eachElement(got, func(block string, e object) {
				if block == "" || e["action_id"] == "" {
					t.Errorf("an id is missing: %q %v", block, e)
				}
			})
			for _, b := range got {
				if b.(object)["block_id"] == nil {
					t.Errorf("no block_id: %v", b)
				}
			}
		})
	}
}

func TestBlocksThatSlackRefuses(t *testing.T) {
	t.Parallel()
	const text = `{"type":"plain_text","text":"x"}`
	button := func(more string) string {
		return `[{"type":"actions","elements":[{"type":"button","text":` + text + `,"action_id":"a"` + more + `}]}]`
	}
	sel := func(more string) string {
		return `[{"type":"actions","elements":[{"type":"static_select","action_id":"a",` + more + `}]}]`
	}
	for name, c := range map[string]struct {
		on   surface
		raw  string
		want []string
	}{
		"not an object":     {surfaceMessage, `[1]`, []string{"must provide an object [json-pointer:/blocks/0]"}},
		"no type":           {surfaceMessage, `[{}]`, []string{"missing required field: type [json-pointer:/blocks/0]"}},
		"unknown":           {surfaceMessage, `[{"type":"blink"}]`, []string{"unsupported type: blink [json-pointer:/blocks/0/type]"}},
		"only in streams":   {surfaceMessage, `[{"type":"alert","text":` + text + `}]`, []string{"unsupported type: alert [json-pointer:/blocks/0/type]"}},
		"only in messages":  {surfaceModal, `[{"type":"markdown","text":"x"}]`, []string{"unsupported type: markdown [json-pointer:/blocks/0/type]"}},
		"extra field":       {surfaceMessage, `[{"type":"divider","colour":"red"}]`, []string{"invalid additional property: colour [json-pointer:/blocks/0]"}},
		"51":                {surfaceMessage, many(51, `{"type":"divider"}`), []string{"no more than 50 items allowed [json-pointer:/blocks]"}},
		"101":               {surfaceModal, many(101, `{"type":"divider"}`), []string{"no more than 100 items allowed [json-pointer:/blocks]"}},
		"same block_id":     {surfaceMessage, many(2, `{"type":"divider","block_id":"b"}`), []string{"`block_id` b is already in use [json-pointer:/blocks/1/block_id]"}},
		"long block_id":     {surfaceMessage, `[{"type":"divider","block_id":"%256"}]`, []string{"must be less than 256 characters [json-pointer:/blocks/0/block_id]"}},
		"empty section":     {surfaceMessage, `[{"type":"section"}]`, []string{"must define either `text` or `fields` [json-pointer:/blocks/0/type]"}},
		"long section":      {surfaceMessage, `[{"type":"section","text":{"type":"mrkdwn","text":"%3001"}}]`, []string{"failed to match all allowed schemas [json-pointer:/blocks/0/text]", "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"}},
		"empty text":        {surfaceMessage, `[{"type":"section","text":{"type":"mrkdwn","text":""}}]`, []string{"failed to match all allowed schemas [json-pointer:/blocks/0/text]", "must be more than 0 characters [json-pointer:/blocks/0/text/text]"}},
		"emoji in mrkdwn":   {surfaceMessage, `[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, []string{"failed to match all allowed schemas [json-pointer:/blocks/0/text]", "invalid additional property: emoji [json-pointer:/blocks/0/text]"}},
		"11 fields":         {surfaceMessage, `[{"type":"section","fields":` + many(11, text) + `}]`, []string{"no more than 10 items allowed [json-pointer:/blocks/0/fields]"}},
		"long field":        {surfaceMessage, `[{"type":"section","fields":[{"type":"plain_text","text":"%2001"}]}]`, []string{"failed to match all allowed schemas [json-pointer:/blocks/0/fields/0]", "must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]"}},
		"input as accesory": {surfaceMessage, `[{"type":"section","text":` + text + `,"accessory":{"type":"plain_text_input"}}]`, []string{"unsupported type: plain_text_input [json-pointer:/blocks/0/accessory/type]"}},
		"mrkdwn header":     {surfaceMessage, `[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`, []string{"unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]"}},
		"long header":       {surfaceMessage, `[{"type":"header","text":{"type":"plain_text","text":"%151"}}]`, []string{"must be less than 151 characters [json-pointer:/blocks/0/text/text]"}},
		"11 in context":     {surfaceMessage, `[{"type":"context","elements":` + many(11, text) + `}]`, []string{"no more than 10 items allowed [json-pointer:/blocks/0/elements]"}},
		"empty context":     {surfaceMessage, `[{"type":"context","elements":[]}]`, []string{"no less than 1 items allowed [json-pointer:/blocks/0/elements]"}},
		"26 actions":        {surfaceMessage, `[{"type":"actions","elements":` + many(26, `{"type":"button","text":`+text+`,"action_id":"a#"}`) + `}]`, []string{"no more than 25 items allowed [json-pointer:/blocks/0/elements]"}},
		"same action_id":    {surfaceMessage, `[{"type":"actions","elements":` + many(2, `{"type":"button","text":`+text+`,"action_id":"a"}`) + `}]`, []string{"`action_id` a is already in use in this block [json-pointer:/blocks/0]"}},
		"long action_id":    {surfaceMessage, `[{"type":"actions","elements":[{"type":"button","text":` + text + `,"action_id":"%256"}]}]`, []string{"must be less than 256 characters [json-pointer:/blocks/0/elements/0/action_id]"}},
		"long button":       {surfaceMessage, `[{"type":"actions","elements":[{"type":"button","action_id":"a","text":{"type":"plain_text","text":"%76"}}]}]`, []string{"must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]"}},
		"long value":        {surfaceMessage, button(`,"value":"%2001"`), []string{"must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]"}},
		"style":             {surfaceMessage, button(`,"style":"blue"`), []string{"must be a valid enum value: primary, danger [json-pointer:/blocks/0/elements/0/style]"}},
		"url":               {surfaceMessage, button(`,"url":"javascript:x"`), []string{"must provide a valid URL [json-pointer:/blocks/0/elements/0/url]"}},
		"confirm": {surfaceMessage, button(`,"confirm":{"title":{"type":"plain_text","text":"%101"},"text":{"type":"plain_text","text":"%301"},"confirm":{"type":"plain_text","text":"%31"}}`), []string{
			"must be less than 101 characters [json-pointer:/blocks/0/elements/0/confirm/title/text]",
			"failed to match all allowed schemas [json-pointer:/blocks/0/elements/0/confirm/text]",
			"must be less than 301 characters [json-pointer:/blocks/0/elements/0/confirm/text/text]",
			"must be less than 31 characters [json-pointer:/blocks/0/elements/0/confirm/confirm/text]",
		}},
		"101 options":   {surfaceMessage, sel(`"options":` + many(101, `{"text":`+text+`,"value":"#"}`)), []string{"no more than 100 items allowed [json-pointer:/blocks/0/elements/0/options]"}},
		"no options":    {surfaceMessage, sel(`"placeholder":` + text), []string{"missing required field: options [json-pointer:/blocks/0/elements/0]"}},
		"long option":   {surfaceMessage, sel(`"options":[{"text":{"type":"plain_text","text":"%76"},"value":"%151"}]`), []string{"must be less than 76 characters [json-pointer:/blocks/0/elements/0/options/0/text/text]", "must be less than 151 characters [json-pointer:/blocks/0/elements/0/options/0/value]"}},
		"typed option":  {surfaceMessage, sel(`"options":[{"type":"option","text":` + text + `,"value":"x"}]`), []string{"invalid additional property: type [json-pointer:/blocks/0/elements/0/options/0]"}},
		"other initial": {surfaceMessage, sel(`"options":[{"text":` + text + `,"value":"x"}],"initial_option":{"text":` + text + `,"value":"y"}`), []string{"must be one of the options [json-pointer:/blocks/0/elements/0/initial_option]"}},
		"6 in overflow": {surfaceMessage, `[{"type":"actions","elements":[{"type":"overflow","action_id":"a","options":` + many(6, `{"text":`+text+`,"value":"#"}`) + `}]}]`, []string{"no more than 5 items allowed [json-pointer:/blocks/0/elements/0/options]"}},
		"no alt":        {surfaceMessage, `[{"type":"image","image_url":"https://x.example/a.png"}]`, []string{"missing required field: alt_text [json-pointer:/blocks/0]"}},
		"no image":      {surfaceMessage, `[{"type":"image","alt_text":"a"}]`, []string{"must define either `image_url` or `slack_file` [json-pointer:/blocks/0]"}},
		"unknown file":  {surfaceMessage, `[{"type":"image","alt_text":"a","slack_file":{"id":"F1"}}]`, []string{"invalid slack file [json-pointer:/blocks/0/slack_file]"}},
		"no label":      {surfaceModal, `[{"type":"input","element":{"type":"plain_text_input"}}]`, []string{"missing required field: label [json-pointer:/blocks/0]"}},
		"button input":  {surfaceModal, `[{"type":"input","label":` + text + `,"element":{"type":"button"}}]`, []string{"unsupported type: button [json-pointer:/blocks/0/element/type]"}},
		"lengths":       {surfaceModal, `[{"type":"input","label":` + text + `,"element":{"type":"plain_text_input","min_length":5,"max_length":4}}]`, []string{"must not be more than max_length [json-pointer:/blocks/0/element/min_length]"}},
		"long markdown": {surfaceMessage, `[{"type":"markdown","text":"%12001"}]`, []string{"must be less than 12001 characters [json-pointer:/blocks/0/text]", "markdown text of all blocks must be less than 12001 characters [json-pointer:/blocks]"}},
		"two tables":    {surfaceMessage, many(2, `{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]}`), []string{"only_one_table_allowed [json-pointer:/blocks]"}},
		"101 rows":      {surfaceMessage, `[{"type":"table","rows":` + many(101, `[{"type":"raw_text","text":"x"}]`) + `}]`, []string{"no more than 100 items allowed [json-pointer:/blocks/0/rows]"}},
		"21 columns":    {surfaceMessage, `[{"type":"table","rows":[` + many(21, `{"type":"raw_text","text":"x"}`) + `]}]`, []string{"no more than 20 items allowed [json-pointer:/blocks/0/rows/0]"}},
		"cell":          {surfaceMessage, `[{"type":"table","rows":[[{"type":"image"}]]}]`, []string{"unsupported type: image [json-pointer:/blocks/0/rows/0/0/type]"}},
		"task":          {surfaceMessage, `[{"type":"task_card","task_id":"1","title":"%257","status":"done"}]`, []string{"must be less than 257 characters [json-pointer:/blocks/0/title]", "must be a valid enum value: pending, in_progress, complete, error [json-pointer:/blocks/0/status]"}},
		"chart":         {surfaceMessage, `[{"type":"data_visualization","title":"%51","chart":{"type":"pie","segments":` + many(21, `{"label":"x","value":1}`) + `}}]`, []string{"must be less than 51 characters [json-pointer:/blocks/0/title]", "no more than 20 items allowed [json-pointer:/blocks/0/chart/segments]"}},
		"7 series":      {surfaceMessage, `[{"type":"data_visualization","title":"x","chart":{"type":"bar","series":` + many(7, `{}`) + `,"axis_config":{"categories":["a"]}}}]`, []string{"no more than 6 items allowed [json-pointer:/blocks/0/chart/series]"}},
		"rich":          {surfaceMessage, `[{"type":"rich_text","elements":[{"type":"section"},{"type":"rich_text_section","elements":[{"type":"text"},{"type":"blink"}]}]}]`, []string{"unsupported type: section [json-pointer:/blocks/0/elements/0/type]", "missing required field: text [json-pointer:/blocks/0/elements/1/elements/0]", "unsupported type: blink [json-pointer:/blocks/0/elements/1/elements/1/type]"}},
		"nested":        {surfaceMessage, `[{"type":"container","child_blocks":[{"type":"container","child_blocks":[]}]}]`, []string{"unsupported type: container [json-pointer:/blocks/0/child_blocks/0/type]"}},
		"date":          {surfaceModal, `[{"type":"actions","elements":[{"type":"datepicker","initial_date":"31.1.2025"}]}]`, []string{"must match pattern YYYY-MM-DD [json-pointer:/blocks/0/elements/0/initial_date]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problems := checkBlocks(parse(t, c.raw), c.on, "/blocks", nobody)
			if diff := cmp.Diff(c.want, problems); diff != "" {
				t.Error(diff)
			}
			if got != nil {
				t.Errorf("blocks besides problems: %v", got)
			}
		})
	}
}

func TestAViewsLimits(t *testing.T) {
	t.Parallel()
	view := func(more string) object {
		return parse(t, `[{"type":"modal","title":{"type":"plain_text","text":"%24"},"blocks":[{"type":"divider"}]`+more+`}]`)[0].(object)
	}
	if _, p := checkView(view(`,"submit":{"type":"plain_text","text":"%24"},"close":{"type":"plain_text","text":"%24"},"private_metadata":"%3000","callback_id":"%255","notify_on_close":true`), []string{"modal"}, nobody); len(p) > 0 {
		t.Error(p)
	}
	for raw, want := range map[string]string{
		`,"submit":{"type":"plain_text","text":"%25"}`: "must be less than 25 characters [json-pointer:/view/submit/text]",
		`,"private_metadata":"%3001"`:                  "must be less than 3001 characters [json-pointer:/view/private_metadata]",
		`,"callback_id":"%256"`:                        "must be less than 256 characters [json-pointer:/view/callback_id]",
		`,"hash":"x"`:                                  "invalid additional property: hash [json-pointer:/view]",
		`,"title":{"type":"mrkdwn","text":"x"}`:        "unsupported type: mrkdwn [json-pointer:/view/title/type]",
		`,"title":null`:                                "missing required field: title [json-pointer:/view]",
		`,"blocks":null`:                               "missing required field: blocks [json-pointer:/view]",
		`,"blocks":[{"type":"table"}]`:                 "unsupported type: table [json-pointer:/view/blocks/0/type]",
		`,"blocks":[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input"}}]`: "`submit` is required because block 0 is an input [json-pointer:/view]",
		`,"type":"home"`: "unsupported type: home [json-pointer:/view/type]",
	} {
		if _, p := checkView(view(raw), []string{"modal"}, nobody); len(p) != 1 || p[0] != want {
			t.Errorf("%s: %v, want %s", raw, p, want)
		}
	}
}

func TestWhatSlackGoBuildsIsTaken(t *testing.T) {
	t.Parallel()
	text := slackgo.NewTextBlockObject(slackgo.PlainTextType, "x", true, false)
	md := slackgo.NewTextBlockObject(slackgo.MarkdownType, "*x*", false, true)
	opt := slackgo.NewOptionBlockObject("v", text, text)
	confirm := slackgo.NewConfirmationBlockObject(text, md, text, text).WithStyle(slackgo.StyleDanger)
	sel := slackgo.NewOptionsSelectBlockElement("static_select", text, "sel", opt)
	sel.InitialOption = opt
	rich := slackgo.NewRichTextBlock("rich", slackgo.NewRichTextSection(
		slackgo.NewRichTextSectionTextElement("a", &slackgo.RichTextSectionTextStyle{Bold: true}),
		slackgo.NewRichTextSectionLinkElement("https://x.example", "x", nil),
		slackgo.NewRichTextSectionUserElement("U1", nil),
	))
	task := slackgo.NewTaskCardBlock("t1", "Run tests")
	task.Status, task.Details = slackgo.TaskCardStatusInProgress, slackgo.NewRichTextBlock("", slackgo.NewRichTextSection(slackgo.NewRichTextSectionTextElement("x", nil)))
	list := []slackgo.Block{
		slackgo.NewSectionBlock(md, []*slackgo.TextBlockObject{text, md}, slackgo.NewAccessory(slackgo.NewOverflowBlockElement("o", opt))),
		slackgo.NewContextBlock("", md, slackgo.NewImageBlockElement("https://x.example/a.png", "a")),
		slackgo.NewActionBlock("act", slackgo.NewButtonBlockElement("b", "v", text).WithStyle(slackgo.StylePrimary).WithConfirm(confirm), sel,
			slackgo.NewRadioButtonsBlockElement("r", opt), slackgo.NewCheckboxGroupsBlockElement("c", opt), slackgo.NewDatePickerBlockElement("d"),
			slackgo.NewOptionsMultiSelectBlockElement("multi_users_select", text, "mu")),
		slackgo.NewDividerBlock(),
		slackgo.NewHeaderBlock(text),
		slackgo.NewImageBlock("https://x.example/a.png", "a", "", text),
		slackgo.NewInputBlock("in", text, text, slackgo.NewPlainTextInputBlockElement(text, "p").WithMultiline(true)),
		slackgo.NewMarkdownBlock("", "# x"),
		rich, task,
		slackgo.NewTableBlock("").AddRow(slackgo.NewTableRawTextCell("a"), slackgo.NewTableRawTextCell("b")).WithColumnSettings(slackgo.ColumnSetting{Align: slackgo.ColumnAlignmentLeft, IsWrapped: true}),
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	got, problems := checkBlocks(parse(t, string(raw)), surfaceMessage, "/blocks", nobody)
	if len(problems) > 0 {
		t.Fatalf("%s\n%s", strings.Join(problems, "\n"), raw)
	}
	var back slackgo.Blocks
	if err := json.Unmarshal(mustJSON(got), &back); err != nil {
		t.Fatal(err)
	}
	for _, b := range back.BlockSet {
		if _, unknown := b.(*slackgo.UnknownBlock); unknown {
			t.Errorf("slack-go does not know %v", b)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	for _, seed := range []string{
		`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"overflow","options":[{"text":{"type":"plain_text","text":"x"},"value":"v"}]}}]`,
		`[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"}},{"type":"static_select","option_groups":[{}]}]}]`,
		`[{"type":"input","label":null,"element":{"type":"plain_text_input","max_length":1e9}}]`,
		`[{"type":"table","rows":[[null]]},{"type":"rich_text","elements":[{"type":"rich_text_list","elements":[{}]}]}]`,
		`[{"type":"container","child_blocks":[{"type":"carousel","elements":[{"type":"card"}]}]},{"type":"plan","tasks":[1]}]`,
		`[{"type":"data_visualization","chart":{"type":"bar","series":[{"data":[1]}]}}]`, `[[]]`, `[{"type":1,"block_id":[]}]`,
	} {
		f.Add(seed, uint8(0))
	}
	f.Fuzz(func(t *testing.T, raw string, on uint8) {
		var list []any
		if decodeJSON([]byte(raw), &list) != nil {
			return
		}
		before := string(mustJSON(list))
		got, problems := checkBlocks(list, surface(on%4), "/blocks", nobody)
		if string(mustJSON(list)) != before {
			t.Fatalf("the input was changed: %s", raw)
		}
		if (got == nil) == (len(problems) == 0) {
			t.Fatalf("%v besides %v", got, problems)
		}
		if got == nil {
			return
		}
		_ = blocksTooLong(got)
		// What was taken is taken again, unchanged: ids are complete.
		again, problems := checkBlocks(got, surface(on%4), "/blocks", nobody)
		if len(problems) > 0 || string(mustJSON(again)) != string(mustJSON(got)) {
			t.Fatalf("not stable: %v\n%s\n%s", problems, mustJSON(got), mustJSON(again))
		}
		eachInput(got, func(_ string, e object) {
			_ = initialState(e)
			_, _ = enter(e, "x")
			_, _ = enter(e, []any{"x", object{"value": "y"}})
		})
		// slack-go must be able to read what the workspace hands out.
		var back slackgo.Blocks
		if err := json.Unmarshal(mustJSON(got), &back); err != nil {
			t.Logf("slack-go: %v", err)
		}
		_, _ = findElement(got, click{ActionID: "x"})
	})
}
