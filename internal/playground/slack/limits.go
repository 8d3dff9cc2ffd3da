package slack

import (
	"time"
)

// The tiers of Slack's rate limits, in calls a minute.
const (
	tier2 = 20
	tier3 = 50
	tier4 = 100
	// tierSpecial is the workspace-wide cap on posting, which Slack does not publish.
	tierSpecial = 300
	// tierBoot is for apps.connections.open and auth.test, which have generous limits.
	tierBoot = 300
)

const (
	limitWindow        = time.Minute
	postEvery          = time.Second // one message a second in a channel …
	postBurst          = 5           // … with a short burst
	postMethod         = "chat.postMessage"
	maxTrackedChannels = 4096
)

// limiter counts calls by method over the last minute, and messages by channel.
type limiter struct {
	recent map[string][]time.Time
	posts  map[string]bucket
}

// bucket is what is left of a channel's burst, at a time.
type bucket struct {
	left float64
	at   time.Time
}

func newLimiter() *limiter {
	return &limiter{recent: map[string][]time.Time{}, posts: map[string]bucket{}}
}

// take counts a call, or says how long to wait for one to be free.
func (l *limiter) take(method, channel string, perMinute int, at time.Time) time.Duration {
	list := l.recent[method]
	for len(list) > 0 && at.Sub(list[0]) >= limitWindow {
		list = list[1:]
	}
	l.recent[method] = list
	if perMinute > 0 && len(list) >= perMinute {
		return limitWindow - at.Sub(list[0])
	}
	if method == postMethod {
		b, ok := l.posts[channel]
		if !ok {
			b = bucket{left: postBurst, at: at}
		}
		b.left = min(postBurst, b.left+float64(at.Sub(b.at))/float64(postEvery))
		b.at = at
		if b.left < 1 {
			l.posts[channel] = b
			return time.Duration((1 - b.left) * float64(postEvery))
		}
		b.left--
		if len(l.posts) > maxTrackedChannels { // channels that do not exist, by the thousand
			clear(l.posts)
		}
		l.posts[channel] = b
	}
	l.recent[method] = append(list, at)
	return 0
}
