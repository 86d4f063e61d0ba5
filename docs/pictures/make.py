#!/usr/bin/env python3
"""Draws docs/pictures/one-surface.svg: how one publish reaches an open app and a closed one.

    docs/pictures/make.py

The picture has a white ground of its own, so that it reads the same on light and dark pages, and loads nothing.
"""

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 920, 400
INK, GREY, BLUE, ORANGE, GREEN = "#1f2328", "#57606a", "#0969da", "#bc4c00", "#1a7f37"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
TITLE = "One publish, one surface for each participant"
DESCRIPTION = (
    "A backend publishes an event once to the Tandem hub. Ana's app is open and gets the event over the WebSocket; her app's receipt "
    "keeps the push away. Ben's app is closed, so he gets a notification via FCM or APNs.")

parts = []


def text(x, y, content, size=15, colour=INK, anchor="middle", weight="400"):
    parts.append(
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">{escape(content)}</text>')


def box(x, y, width, height, title, lines, colour=INK, fill="#f6f8fa"):
    parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')
    top = y + height / 2 + 6 - 10 * len(lines)
    text(x + width / 2, top, title, 17, colour, weight="600")
    for number, line in enumerate(lines, 1):
        text(x + width / 2, top + 20 * number, line, 13, GREY)


def arrow(points, colour, dashed=False):
    """A line through the points with a head at the last one."""
    (x1, y1), (x2, y2) = points[-2:]
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    foot = (x2 - 10 * dx, y2 - 10 * dy)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*points[:-1], foot])
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in [
        (x2, y2), (foot[0] - 5 * dy, foot[1] + 5 * dx), (foot[0] + 5 * dy, foot[1] - 5 * dx)])
    dash = ' stroke-dasharray="6 5"' if dashed else ""
    parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    parts.append(f'<polygon points="{head}" fill="{colour}"/>')


def draw():
    box(20, 140, 170, 90, "Your backend", ["any pusher-http library"])
    box(316, 120, 184, 130, "Tandem", ["roster, presence,", "receipts, definitions"], BLUE, "#ddf4ff")
    box(706, 36, 196, 100, "Ana", ["app open", "any Pusher client"], GREEN, "#dafbe1")
    box(706, 250, 196, 100, "Ben", ["app closed", "notification on his phone"], ORANGE, "#fff1e5")
    box(540, 264, 132, 72, "FCM, APNs", [], ORANGE, "#ffffff")

    arrow([(190, 175), (316, 175)], INK)
    text(253, 163, "publish once", 14)
    arrow([(316, 205), (190, 205)], GREY)
    text(253, 226, "200: stored", 13, GREY)

    arrow([(500, 142), (706, 68)], GREEN)
    text(568, 86, "event, WebSocket", 14, GREEN)
    arrow([(706, 104), (500, 178)], GREEN, dashed=True)
    text(640, 168, "receipt: no push", 14, GREEN)

    arrow([(450, 250), (450, 300), (540, 300)], ORANGE)
    text(440, 290, "absent, or no receipt", 14, ORANGE, anchor="end")
    text(440, 310, "in time: push", 14, ORANGE, anchor="end")
    arrow([(672, 300), (706, 300)], ORANGE)
    arrow([(606, 264), (606, 226), (500, 226)], GREY, dashed=True)
    text(614, 240, "outcome", 13, GREY, anchor="start")

    text(WIDTH / 2, 384, "Each participant is told on one surface. Presence only chooses how long the hub waits for the receipt.", 14, GREY)


draw()
body = "\n".join(f"  {part}" for part in parts)
(Path(__file__).parent / "one-surface.svg").write_text(f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}" role="img">
  <title>{escape(TITLE)}</title>
  <desc>{escape(DESCRIPTION)}</desc>
  <rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12" fill="#ffffff" stroke="#d0d7de"/>
{body}
</svg>
""", encoding="utf-8")
