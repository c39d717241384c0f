package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// patience is how long the page may take for anything, before it is scaled.
const patience = 20 * time.Second

// gate leads from a port of this machine to netmaster in the lab.
func gate(t testing.TB, l *lab.Lab, host string) (address string) {
	t.Helper()
	h, err := l.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- h.Forward(ctx, in, net.JoinHostPort(h.ControlIP(), "9999")) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return in.Addr().String()
}

// tab is a page in a browser of its own, so that nothing is left of one who was logged in.
type tab struct {
	testing.TB
	ctx  context.Context
	base string
}

// browse starts a browser. It ends with the test, which fails if the page has thrown an error.
func browse(t testing.TB, base string) tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; run scripts/deps", err)
	}
	ctx, end := chromedp.NewContext(context.WithoutCancel(t.Context()), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.IgnoreCertErrors, chromedp.WindowSize(1360, 860),
		chromedp.UserDataDir(t.TempDir()), chromedp.Env("HOME="+t.TempDir()), chromedp.WSURLReadTimeout(eventually.Scaled(patience)),
	))
	t.Cleanup(end)
	p := tab{t, ctx, base}
	// The browser lives as long as the context of the first action.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1360, 860)); err != nil {
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for m, err := range messages {
			switch {
			case err != nil:
				return
			case m.IsException() || strings.Contains(m.String(), "Content Security Policy"):
				t.Errorf("the page: %s", m)
			}
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			p.keep("failed")
		}
		end()
		<-heard
	})
	return p
}

// within bounds what is asked of the browser.
func (p tab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, eventually.Scaled(patience))
}

func (p tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := p.within()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.Fatal(err, p.text())
	}
}

// eval runs a script, whose value or promise gives a T.
func eval[T any](p tab, script string) T {
	p.Helper()
	ctx, cancel := p.within()
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%.200s: %v\n%s", script, err, p.text())
	}
	return v
}

// text is what the page shows, for messages of tests.
func (p tab) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.hash + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return v
}

// open goes to a view.
func (p tab) open(hash string) tab {
	p.Helper()
	if eval[bool](p, `location.pathname === "/ui/"`) {
		eval[any](p, `location.hash = `+strconv.Quote(hash))
		return p
	}
	p.do(chromedp.Navigate(p.base + "/ui/#" + hash))
	return p
}

// until waits until an expression is true. The page tells when something has changed.
func (p tab) until(what, expression string) {
	p.Helper()
	script := fmt.Sprintf(`new Promise((done) => {
		const look = () => { if (!(%s)) return; watch.disconnect(); done(true); };
		const watch = new MutationObserver(look);
		watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		look();
	})`, expression)
	ctx, cancel := p.within()
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
	for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "navigated") { // to another page, which may have it
		time.Sleep(10 * time.Millisecond)
		_, err = chromedp.Run(ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("it has not come")
		}
		p.Fatalf("%s: %v. The page shows:\n%s", what, err, p.text())
	}
}

// sees waits until the element shows texts, whatever the size of letters.
func (p tab) sees(selector string, texts ...string) {
	p.Helper()
	for _, text := range texts {
		p.until(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf(
			`[...document.querySelectorAll(%q)].some((e) => e.innerText.toLowerCase().includes(%q))`, selector, strings.ToLower(text)))
	}
}

// gone waits until no such element shows the text.
func (p tab) gone(selector, text string) {
	p.Helper()
	p.until(fmt.Sprintf("no %q in %s", text, selector), fmt.Sprintf(
		`![...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))`, selector, text))
}

// click clicks the element of a selector that shows a text, with the mouse.
func (p tab) click(selector, text string) {
	p.Helper()
	p.until(fmt.Sprintf("%s %q to click", selector, text), fmt.Sprintf(
		`(() => { const e = [...document.querySelectorAll(%q)].find((e) => e.innerText.includes(%q) && !e.disabled && e.checkVisibility());
			document.querySelector("[data-mouse]")?.removeAttribute("data-mouse"); e?.setAttribute("data-mouse", ""); return e; })()`, selector, text))
	p.do(chromedp.Click(chromedp.CSS("[data-mouse]"), chromedp.NodeVisible))
}

// types puts a text into a field that may have another one.
func (p tab) types(selector, text string) {
	p.Helper()
	p.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	eval[any](p, fmt.Sprintf(`document.querySelector(%q).select?.()`, selector))
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// scheme sets what the system prefers: light or dark.
func (p tab) scheme(name string) {
	p.Helper()
	ctx, cancel := p.within()
	defer cancel()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		p.Fatal(err)
	}
}

// sleep freezes the page, as browsers do with one that nobody looks at, while something happens.
func (p tab) sleep(meanwhile func()) {
	p.Helper()
	life := func(state page.SetWebLifecycleStateState) {
		ctx, cancel := p.within()
		defer cancel()
		if _, err := chromedp.Call(ctx, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state}); err != nil {
			p.Fatal(err)
		}
	}
	life(page.SetWebLifecycleStateStateFrozen)
	meanwhile()
	life(page.SetWebLifecycleStateStateActive)
}

// keep writes a picture of the page into the directory of CONTIV_SCREENSHOTS.
func (p tab) keep(name string) {
	dir := os.Getenv("CONTIV_SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := p.within()
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(fmt.Sprintf("%s/%s.png", dir, name), picture, 0o644))
	}
	if err != nil {
		p.Log(err)
	}
}
