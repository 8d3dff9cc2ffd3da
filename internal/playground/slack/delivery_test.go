package slack_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"deckhand/internal/playground/slack"
)

// seconds are the times of envelopes since a start, rounded down.
func seconds(start time.Time, list []envelope) []int {
	var out []int
	for _, e := range list {
		out = append(out, int(e.at.Sub(start)/time.Second))
	}
	return out
}

func TestAnUnacknowledgedEventIsRetriedAtOnceAfterAMinuteAndAfterFive(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		live := f.events()
		s := f.hello()
		start := time.Now()
		f.say(slack.UserAda, "D0ADA", "hello", "")
		var got []envelope
		for range 4 {
			got = append(got, s.next())
		}
		s.none(time.Hour)
		if diff := cmp.Diff([]int{0, 3, 66, 369}, seconds(start, got)); diff != "" {
			t.Error(diff)
		}
		for i, e := range got {
			if e.obj["retry_attempt"] != float64(i) || dig(t, e.obj, "payload/event_id") != dig(t, got[0].obj, "payload/event_id") {
				t.Errorf("attempt %d: %v", i, e.obj)
			}
		}
		if got[0].obj["retry_reason"] != "" || got[1].obj["retry_reason"] != "timeout" || got[0].id() == got[1].id() {
			t.Errorf("reasons and envelopes: %v", got)
		}
		if w := await(t, live, "warning"); w["user"] != slack.UserAda {
			t.Errorf("warning: %v", w)
		}
	})
}

func TestAnAcknowledgedEventIsNotRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(_ *testing.T, f *fast) {
		s := f.hello()
		f.say(slack.UserAda, "D0ADA", "hello", "")
		e := s.next()
		time.Sleep(2900 * time.Millisecond)
		s.ack(e, nil)
		s.none(time.Hour)
	})
}

func TestALateAcknowledgementIsNotHeard(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		s := f.hello()
		f.say(slack.UserAda, "D0ADA", "hello", "")
		first := s.next()
		second := s.next()
		s.ack(first, nil) // its time is over
		s.ack(second, nil)
		s.none(time.Hour)
		if second.obj["retry_attempt"] != 1.0 {
			t.Errorf("second: %v", second.obj)
		}
	})
}

func TestEventsWaitForAConnectionAndComeInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		for _, text := range []string{"one", "two", "three"} {
			f.say(slack.UserAda, "D0ADA", text, "")
		}
		time.Sleep(30 * time.Second)
		s := f.hello()
		for _, text := range []string{"one", "two", "three"} {
			e := s.next()
			s.ack(e, nil)
			if dig(t, e.obj, "payload/event/text") != text {
				t.Errorf("got %v, want %s", e.obj, text)
			}
		}
	})
}

func TestAnEventThatNobodyTakesForSixMinutesIsLost(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		live := f.events()
		f.say(slack.UserAda, "D0ADA", "hello", "")
		await(t, live, "warning")
		f.hello().none(time.Hour)
	})
}

func TestABrokenConnectionLeadsToARetryOnAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		first := f.hello()
		f.say(slack.UserAda, "D0ADA", "hello", "")
		first.next()
		second := f.hello()
		_ = first.conn.Close()
		e := second.next()
		second.ack(e, nil)
		if e.obj["retry_attempt"] != 1.0 {
			t.Errorf("retry: %v", e.obj)
		}
	})
}

func TestEnvelopesGoToAnyOfTenConnectionsAndTheEleventhIsSentAway(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		all := make(chan envelope, 1000)
		for i := range 10 {
			s := f.open()
			if e := s.next(); e.obj["num_connections"] != float64(i+1) {
				t.Errorf("hello %d: %v", i, e.obj)
			}
			s.serve(func(e envelope) any { all <- e; return nil })
		}
		extra := f.open()
		if e := extra.next(); e.obj["type"] != "disconnect" || e.obj["reason"] != "too_many_websockets" {
			t.Errorf("eleventh: %v", e.obj)
		}
		<-extra.gone
		used := map[*sock]int{}
		for range 200 {
			f.say(slack.UserAda, "D0ADA", "hello", "")
			e := <-all
			used[e.sock]++
		}
		if len(used) < 8 { // by chance less than once in a billion
			t.Errorf("only %d of 10 connections were used", len(used))
		}
		if n := f.srv.Connections(); n != 10 {
			t.Errorf("%d connections", n)
		}
	})
}

func TestATicketIsGoodOnceAndForHalfAMinute(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		url := f.address()
		f.dial(url, nil).next()
		d := websocket.Dialer{NetDialContext: f.net.dial}
		refused := func(url string) {
			t.Helper()
			_, resp, err := d.DialContext(t.Context(), url, nil)
			if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
				t.Errorf("dial: %v, %v", resp, err)
			}
			if resp != nil {
				_ = resp.Body.Close()
			}
		}
		refused(url)
		url = f.address()
		time.Sleep(31 * time.Second)
		refused(url)
		refused("ws://127.0.0.1:8065/socket")
	})
}

func TestPingsKeepAConnectionAndSilenceEndsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		pongs := make(chan string, 1)
		s := f.dial(f.address(), func(c *websocket.Conn) {
			c.SetPongHandler(func(data string) error { pongs <- data; return nil })
		})
		s.next()
		time.Sleep(10 * time.Minute) // the reader answers pings by itself
		if n := f.srv.Connections(); n != 1 {
			t.Fatalf("%d connections after ten minutes", n)
		}
		mute := f.dial(f.address(), func(c *websocket.Conn) {
			c.SetPingHandler(func(string) error { return nil })
		})
		mute.next()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := f.srv.Connections(); n != 1 {
			t.Errorf("%d connections, the mute one should be gone", n)
		}
		if err := s.conn.WriteControl(websocket.PingMessage, []byte("me"), time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if got := <-pongs; got != "me" {
			t.Errorf("pong %q", got)
		}
	})
}

// card posts a message with buttons and a menu and returns its timestamp.
func (f *fast) card(channel, thread string) string {
	f.t.Helper()
	return f.ok("chat.postMessage", obj{
		"channel": channel, "thread_ts": thread, "text": "Approve?", "blocks": []any{
			obj{"type": "section", "block_id": "what", "text": obj{"type": "mrkdwn", "text": "Run?"}, "accessory": obj{
				"type": "static_select", "action_id": "scope", "options": []any{option("once"), option("session")}, "initial_option": option("once"),
			}},
			obj{"type": "actions", "block_id": "card", "elements": []any{
				obj{"type": "button", "action_id": "approve", "value": "id-1", "text": plain("Approve")},
				obj{"type": "button", "action_id": "deny", "value": "id-1", "text": plain("Deny")},
				obj{"type": "overflow", "action_id": "more", "options": []any{option("why"), option("who")}},
			}},
		},
	})["ts"].(string)
}

func plain(t string) obj  { return obj{"type": "plain_text", "text": t} }
func option(v string) obj { return obj{"text": plain(strings.ToUpper(v)), "value": v} }

func TestAClickIsSentOnceAndThePersonIsWarned(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		s := f.hello()
		s.ack(s.next(), nil) // the card itself
		live := f.events()
		start := time.Now()
		got := f.control("actions", obj{"user": slack.UserAda, "channel": slack.ChannelEngineering, "message_ts": ts, "action_id": "approve"})
		if took := time.Since(start); got["acked"] != false || took < 3*time.Second || took > 4*time.Second {
			t.Errorf("after %v: %v", took, got)
		}
		if w := await(t, live, "warning"); w["user"] != slack.UserAda {
			t.Errorf("warning: %v", w)
		}
		if n := len(f.control("warnings?user="+slack.UserAda, nil)["warnings"].([]any)); n != 1 {
			t.Errorf("%d warnings to Ada", n)
		}
		if n := len(f.control("warnings?user="+slack.UserGrace, nil)["warnings"].([]any)); n != 0 {
			t.Errorf("%d warnings to Grace", n)
		}
		s.next()
		s.none(time.Hour)
	})
}

func TestAClickWithoutAnAppFailsAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		start := time.Now()
		got := f.control("actions", obj{"user": slack.UserAda, "channel": slack.ChannelEngineering, "message_ts": ts, "action_id": "approve"})
		if got["acked"] != false || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), got)
		}
	})
}

func TestDisconnectFrames(t *testing.T) {
	t.Parallel()
	for reason, grace := range map[string]time.Duration{"warning": 10 * time.Second, "refresh_requested": 10 * time.Second, "link_disabled": 0} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
				s := f.hello()
				start := time.Now()
				f.control("faults", obj{"disconnect": reason})
				if e := s.next(); e.obj["type"] != "disconnect" || e.obj["reason"] != reason {
					t.Errorf("frame: %v", e.obj)
				}
				<-s.gone
				if took := time.Since(start); took != grace {
					t.Errorf("the connection ended after %v, want %v", took, grace)
				}
			})
		})
	}
}

func TestADroppedConnectionEndsWithoutAFrame(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(_ *testing.T, f *fast) {
		s := f.hello()
		f.control("faults", obj{"disconnect": "drop"})
		<-s.gone
		s.none(time.Second)
	})
}

func TestDeliveryFaults(t *testing.T) {
	t.Parallel()
	t.Run("an event comes twice", func(t *testing.T) {
		t.Parallel()
		inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
			s := f.hello()
			f.control("faults", obj{"duplicate_events": 1})
			f.say(slack.UserAda, "D0ADA", "hello", "")
			a, b := s.next(), s.next()
			s.ack(a, nil)
			s.ack(b, nil)
			if a.id() == b.id() || dig(t, a.obj, "payload/event_id") != dig(t, b.obj, "payload/event_id") {
				t.Errorf("not the same event in two envelopes: %v, %v", a, b)
			}
			f.say(slack.UserAda, "D0ADA", "again", "")
			s.ack(s.next(), nil)
			s.none(time.Hour)
		})
	})
	t.Run("an event comes late", func(t *testing.T) {
		t.Parallel()
		inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
			s := f.hello()
			f.control("faults", obj{"late_events": "5s", "times": 1})
			start := time.Now()
			f.say(slack.UserAda, "D0ADA", "first", "")
			f.say(slack.UserAda, "D0ADA", "second", "")
			a := s.next()
			s.ack(a, nil)
			b := s.next()
			s.ack(b, nil)
			if dig(t, a.obj, "payload/event/text") != "second" || b.at.Sub(start) != 5*time.Second {
				t.Errorf("a=%v b=%v after %v", a.obj, b.obj, b.at.Sub(start))
			}
		})
	})
	t.Run("an acknowledgement is not heard", func(t *testing.T) {
		t.Parallel()
		inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
			s := f.hello()
			f.control("faults", obj{"drop_acks": 1})
			f.say(slack.UserAda, "D0ADA", "hello", "")
			s.ack(s.next(), nil)
			e := s.next()
			s.ack(e, nil)
			if e.obj["retry_attempt"] != 1.0 {
				t.Errorf("retry: %v", e.obj)
			}
			s.none(time.Hour)
		})
	})
	t.Run("a click is dropped", func(t *testing.T) {
		t.Parallel()
		inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
			ts := f.card(slack.ChannelEngineering, "")
			s := f.hello()
			clicks := make(chan envelope, 10)
			s.serve(func(e envelope) any {
				if e.obj["type"] == "interactive" {
					clicks <- e
				}
				return nil
			})
			f.control("faults", obj{"drop_clicks": 1})
			click := obj{"user": slack.UserAda, "channel": slack.ChannelEngineering, "message_ts": ts, "action_id": "approve"}
			if got := f.control("actions", click); got["acked"] != false || len(clicks) != 0 {
				t.Errorf("first: %v", got)
			}
			if got := f.control("actions", click); got["acked"] != true || len(clicks) != 1 {
				t.Errorf("second: %v", got)
			}
		})
	})
	t.Run("cleared", func(t *testing.T) {
		t.Parallel()
		inBubble(t, slack.Options{}, func(_ *testing.T, f *fast) {
			s := f.hello()
			f.control("faults", obj{"drop_acks": 5, "duplicate_events": 5, "late_events": "1h"})
			f.do("DELETE", "/_control/faults", "", "", "")
			f.say(slack.UserAda, "D0ADA", "hello", "")
			s.ack(s.next(), nil)
			s.none(time.Hour)
		})
	})
}

func TestAResponseOverTwentyKilobytesIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		s := f.hello()
		f.say(slack.UserAda, "D0ADA", "hello", "")
		e := s.next()
		s.ack(e, obj{"text": strings.Repeat("x", 20480)})
		if again := s.next(); again.obj["retry_attempt"] != 1.0 {
			t.Errorf("again: %v", again.obj)
		}
	})
}

func TestGarbageOnTheSocketIsIgnored(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		s := f.hello()
		for _, raw := range []string{"", "nonsense", "[]", `{"envelope_id":"unknown"}`, `{"envelope_id":1}`, "\x00"} {
			if err := s.conn.WriteMessage(websocket.TextMessage, []byte(raw)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.conn.WriteMessage(websocket.BinaryMessage, []byte{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		f.say(slack.UserAda, "D0ADA", "hello", "")
		s.ack(s.next(), nil)
		s.none(time.Minute)
	})
}
