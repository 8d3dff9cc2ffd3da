// Package pagetest drives the playground's page in a real Chromium, for the tests
// of the page itself and for those of the whole bot.
package pagetest

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// patience is how long a browser test waits for something that must happen.
const patience = waittest.Limit

// Browser is a running Chromium.
type Browser struct{ ctx context.Context }

// Start starts a Chromium that lasts as long as the test.
func Start(t *testing.T) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // tests run as root in containers
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// Fewer processes: nothing here is to be kept from anything else.
		chromedp.Flag("in-process-gpu", true),
		chromedp.Flag("disable-features", "site-per-process,IsolateOrigins,Translate"),
		chromedp.Flag("disable-site-isolation-trials", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		limited, done := context.WithTimeout(ctx, patience)
		defer done()
		if err := chromedp.Cancel(limited); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return &Browser{ctx}
}

// chromium finds the browser, or skips the test, or fails it where tools are required.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("DECKHAND_TEST_CHROMIUM"); path != "" {
		return path
	}
	return needtest.Chromium(t)
}

// Tab is one window of the page. Whatever the page complains about, and whatever
// it asks of another address, fails the test when the tab closes.
type Tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string
	expected string // part of the troubles that the test makes itself
}

// Open opens the page that base serves, at a path, in a fresh profile, 1280 by 800.
func (b *Browser) Open(t *testing.T, base, path string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	w := &Tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	var watching sync.WaitGroup
	watch, stopWatching := context.WithCancel(ctx)
	console := chromedp.Console(watch)
	requests := chromedp.Events(watch, network.RequestWillBeSent)
	watching.Go(func() {
		for message, err := range console {
			if err != nil {
				return
			}
			if message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleException || message.Type == chromedp.ConsoleWarning {
				w.trouble("the console says: " + message.Text)
			}
		}
	})
	watching.Go(func() {
		for request, err := range requests {
			if err != nil {
				return
			}
			if !strings.HasPrefix(request.Request.URL, base+"/") && !strings.HasPrefix(request.Request.URL, "data:") {
				w.trouble("the page asked for " + request.Request.URL)
			}
		}
	})
	t.Cleanup(func() {
		stopWatching()
		watching.Wait()
		limited, done := context.WithTimeout(ctx, patience)
		defer done()
		if err := chromedp.Cancel(limited); err != nil {
			t.Errorf("close the tab: %v", err)
		}
		cancel()
		for _, trouble := range w.troubles {
			t.Error(trouble)
		}
	})
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatalf("watch the network: %v", err)
	}
	w.Prefer("light")
	w.Do(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(base+path))
	return w
}

func (w *Tab) trouble(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expected == "" || !strings.Contains(what, w.expected) {
		w.troubles = append(w.troubles, what)
	}
}

// Expect lets troubles pass that hold a text, because the test itself makes them.
func (w *Tab) Expect(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected = text
}

// Do runs actions in the page.
func (w *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		w.Shot("failure-" + strings.NewReplacer("/", "-", " ", "-").Replace(w.t.Name()))
		w.t.Fatalf("in the page: %v", err)
	}
}

// Click clicks an element that is visible.
func (w *Tab) Click(selector string) {
	w.t.Helper()
	w.Do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Write types into an element.
func (w *Tab) Write(selector, text string) {
	w.t.Helper()
	w.Do(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// Say writes something and presses Enter.
func (w *Tab) Say(selector, text string) {
	w.t.Helper()
	w.Write(selector, text)
	w.Enter()
}

// Enter presses Enter as a keyboard does: one event that is key and character.
// chromedp sends two, and the second is not held back when the page takes the first.
func (w *Tab) Enter() {
	w.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		event := input.DispatchKeyEventParams{Type: kind, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13}
		if kind == input.DispatchKeyEventTypeKeyDown {
			event.Text, event.UnmodifiedText = "\r", "\r"
		}
		if _, err := chromedp.Call(w.ctx, input.DispatchKeyEvent, event); err != nil {
			w.t.Fatalf("press Enter: %v", err)
		}
	}
}

// See waits until an expression of JavaScript is true in the page.
func (w *Tab) See(expression string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(30*time.Millisecond), chromedp.WithPollingTimeout(patience))); err != nil {
		w.Shot("failure-" + strings.NewReplacer("/", "-", " ", "-").Replace(w.t.Name()))
		w.t.Fatalf("the page never shows %s: %v\n%s", expression, err, w.Text("body"))
	}
}

// SeeText waits until an element holds a text.
func (w *Tab) SeeText(selector, text string) {
	w.t.Helper()
	w.See(fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '').includes(%q)", selector, text))
}

// Text is what an element shows now; "" when there is none.
func (w *Tab) Text(selector string) string {
	w.t.Helper()
	return Value[string](w, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// Value is what an expression of JavaScript gives now.
func Value[T any](w *Tab, expression string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		w.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// Prefer makes the system's colours "light" or "dark". Its owner wants nothing to move: a
// picture that moves is drawn sixty times a second, without a graphics card by the
// processor.
func (w *Tab) Prefer(scheme string) {
	w.t.Helper()
	_, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	if err != nil {
		w.t.Fatalf("prefer %s: %v", scheme, err)
	}
}

// Picture is what an element looks like now, as far as it is in view.
func (w *Tab) Picture(selector string) image.Image {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.t.Fatalf("take a picture: %v", err)
	}
	whole, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		w.t.Fatalf("decode a picture: %v", err)
	}
	box := Value[[]int](w, fmt.Sprintf(`(({left, top, right, bottom}) => [left, top, right, bottom].map(Math.round))(document.querySelector(%q).getBoundingClientRect())`, selector))
	part, ok := whole.(interface {
		SubImage(r image.Rectangle) image.Image
	})
	if !ok || len(box) != 4 {
		w.t.Fatalf("no part of the picture is at %v", box)
	}
	return part.SubImage(image.Rect(box[0], box[1], box[2], box[3]))
}

// Shot keeps a picture in the folder that DECKHAND_SCREENSHOTS names, if it does.
func (w *Tab) Shot(name string) {
	w.t.Helper()
	folder := os.Getenv("DECKHAND_SCREENSHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.t.Errorf("take the picture %s: %v", name, err)
		return
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Errorf("make the folder for pictures: %v", err)
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		w.t.Errorf("keep the picture %s: %v", name, err)
	}
}
