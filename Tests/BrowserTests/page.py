"""A tab that watches what a page does: errors, violations of its policy, requests to other origins, keys, sizes and pictures."""

import base64
import json
import os
import time

# Before any script of the page.
WATCH = """
  window.seen = [];
  document.addEventListener("securitypolicyviolation", (event) => seen.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  addEventListener("error", (event) => seen.push(`error: ${event.message}`));
  addEventListener("unhandledrejection", (event) => seen.push(`rejection: ${event.reason}`));
"""
# Text whose colour is too close to its ground (WCAG 2, 1.4.3), and controls without a name.
JUDGE = r"""
  (() => {
    const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return { r, g, b, a }; };
    const light = ({ r, g, b }) => [r, g, b].map((value) => { value /= 255; return value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4; })
      .reduce((sum, value, index) => sum + value * [.2126, .7152, .0722][index], 0);
    const ground = (element) => { for (; element; element = element.parentElement) { const found = parse(getComputedStyle(element).backgroundColor); if (found.a > .9) return found; } return { r: 255, g: 255, b: 255 }; };
    const faint = [], nameless = [];
    for (const element of document.querySelectorAll("body *")) {
      if (!element.checkVisibility?.() || element.closest("[disabled]")) continue;
      const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
      if (text) {
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
        if ((Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5) faint.push(`${element.className} ${text.slice(0, 30)}`);
      }
      if (element.matches("button, a[href], input, select, textarea, [role=grid]") && !element.textContent.trim() && !element.ariaLabel && !element.labels?.length && !element.title)
        nameless.push(element.outerHTML.slice(0, 80));
    }
    const root = document.documentElement;
    return { faint: [...new Set(faint)].slice(0, 5), nameless, wide: root.scrollWidth - root.clientWidth, headings: document.querySelectorAll("h1").length,
      mains: document.querySelectorAll("main").length, rows: document.querySelectorAll("[role=row]").length, hacked: window.hacked ?? null,
      images: [...document.images].map((image) => image.getAttribute("src")).filter((source) => source !== "icon.svg"), scripts: document.scripts.length, seen };
  })()
"""
KEYS = {"Enter": 13, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, "PageDown": 34, "Escape": 27, "/": 191}


class Page:
    def __init__(self, browser, width=1280, height=860, scheme="light", context=None):
        """With a context of its own a page shares no cookie with others."""
        self.browser, self.width, self.height = browser, width, height
        self.tab = browser.open("about:blank", **({"browserContextId": context} if context else {}))
        self.say("Page.enable")
        self.say("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.say("Network.enable")
        self.resize(width, height)
        self.say("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def say(self, method, **parameters):
        return self.browser.say(method, self.tab.session, **parameters)

    def resize(self, width, height):
        self.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def go(self, url, ready="document.querySelector('main[data-ready], main.sign') !== null"):
        self.say("Page.navigate", url="about:blank")
        self.say("Page.navigate", url=url)
        self.tab.wait(f"location.href !== 'about:blank' && ({ready})")

    def value(self, expression):
        return self.tab.value(expression)

    def wait(self, expression):
        self.tab.wait(expression)

    def text(self):
        return self.value("document.body.innerText")

    def wait_text(self, text):
        self.wait(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, text, selector="button, a, [role=option]"):
        """Clicks the first visible element with that text, with a real mouse."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})].find((one) => one.checkVisibility() && one.textContent.trim().startsWith({json.dumps(text)}))"
        self.wait(f"Boolean({found})")
        place = json.loads(self.value(f"(() => {{ const one = {found}; one.scrollIntoView({{ block: 'center' }}); const box = one.getBoundingClientRect(); return JSON.stringify([box.x + box.width / 2, box.y + box.height / 2]); }})()"))
        for kind in ("mousePressed", "mouseReleased"):
            self.say("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def press(self, *keys):
        for key in keys:
            text = {"Enter": "\r", "/": "/"}.get(key)
            code = {"key": key, "code": "Slash" if key == "/" else key, "windowsVirtualKeyCode": KEYS[key]}
            self.say("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **code, **({"text": text} if text else {}))
            self.say("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text):
        self.say("Input.insertText", text=text)

    def rows(self, columns=None):
        """Texts of the cells of the first table's rows, without its titles."""
        return self.value(f"""
          [...document.querySelectorAll("[role=grid] [role=row]")].slice(1)
            .map((row) => [...row.children].slice(0, {columns or 99}).map((cell) => cell.textContent))""")

    def pairs(self, selector):
        """Texts of the two parts of each element, as a name and its value."""
        return self.value(f"""
          Object.fromEntries([...document.querySelectorAll({json.dumps(selector)})]
            .map((one) => [...one.children].map((part) => part.textContent)))""")

    def judge(self):
        return self.value(JUDGE)

    def strangers(self):
        """Addresses of other origins that the page has asked."""
        return self.value("performance.getEntriesByType('resource').map((one) => one.name).filter((name) => new URL(name).origin !== location.origin)")

    def picture(self, name):
        """Kept where PICTURES names a folder."""
        folder = os.environ.get("PICTURES")
        if not folder:
            return
        os.makedirs(folder, exist_ok=True)
        height = self.value(f"Math.min(2400, Math.max({self.height}, document.documentElement.scrollHeight))")
        self.resize(self.width, height)
        time.sleep(0.2)
        data = self.say("Page.captureScreenshot", format="png")["data"]
        self.resize(self.width, self.height)
        with open(os.path.join(folder, f"{name}.png"), "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.tab.close()
