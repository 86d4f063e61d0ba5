// The app of one phone: a Pusher client on a socket of its own, with the hub's companion unless its developer has left it out.
//
// The page around it is the phone: it opens this document, hides it, shows it again or throws it away, and calls `window.app` for the
// moments that a phone's system announces to an app. Whether the document is visible is the phone's to say.
import { Pusher } from "./pusher.js";

const REPLAY_MS = 1500;
const BEACON_MS = 120;
const FLUSH_MS = 400;
const id = location.hash.slice(1);
const settings = await (await fetch(`settings/${id}`)).json();
const hub = `http://127.0.0.1:${settings.port}`;
const seen = new Set();
// What a suspended app was sent: it reads that when it is on the screen again.
const unread = [];
let isShown = true;
let shownAt = Date.now();
let subscribedAt = 0;
let companion;

Object.defineProperty(document, "visibilityState", { get: () => (isShown ? "visible" : "hidden") });
Object.defineProperty(document, "hidden", { get: () => !isShown });

const wish = (body) =>
  fetch("wish", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ phone: id, ...body }) });

const authorize = async (socketId, channelName) => {
  const answer = await fetch(`${hub}/pusher/auth`, {
    method: "POST",
    headers: { Authorization: `Bearer ${settings.token}` },
    body: new URLSearchParams({ socket_id: socketId, channel_name: channelName }),
  });
  if (!answer.ok) throw new Error(`the hub answered ${answer.status}`);
  return answer.json();
};

const mark = (isLive) => {
  const link = document.getElementById("link");
  link.textContent = isLive ? "live" : "connecting";
  link.className = isLive ? "on" : "";
};

const element = (name, text, parent) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  parent?.append(made);
  return made;
};

const draw = ({ number, text, answers, asked_at: askedAt }, isLive) => {
  document.getElementById("empty")?.remove();
  document.querySelector(".new")?.classList.remove("new");
  const card = document.createElement("article");
  card.className = "new";
  card.dataset.number = number;
  const line = element("small", "", card);
  element("span", `Question ${number}`, line);
  if (!isLive) element("em", shownAt <= askedAt ? "sent again" : "while you were away", line);
  element("p", text, card);
  const list = element("ul", "", card);
  for (const answer of answers) element("li", answer, list);
  const main = document.getElementById("questions");
  main.insertBefore(card, [...main.children].find((other) => Number(other.dataset.number) < number) ?? null);
  while (main.children.length > 6) main.lastChild.remove();
};

// The notification of something that is on the screen has had its use.
const tidy = (note) => {
  companion?.received(note.nid);
  wish({ wish: "dismissed", number: note.number });
};

const pusher = new Pusher(settings.key, { host: "127.0.0.1", port: settings.port, authorize, lost: () => mark(false) });
const channel = pusher.subscribe(settings.channel);
channel.bind("pusher:subscription_succeeded", () => {
  subscribedAt = Date.now();
  mark(true);
});
const read = (question) => {
  if (seen.has(question.number)) return;
  seen.add(question.number);
  const since = Math.max(shownAt, subscribedAt);
  const isLive = since <= question.asked_at || Date.now() - since > REPLAY_MS;
  draw(question, isLive);
  const note = parent.notesOf(id).find(({ number }) => number === question.number);
  wish({ wish: "read", number: question.number, live: isLive });
  if (note) companion?.received(note.nid);
};
channel.bind(settings.event, (question) => (isShown ? read(question) : unread.push(question)));
if (settings.companion) {
  const { tandem } = await import(`${hub}/client/tandem.js`);
  companion = tandem(pusher, channel, { hub, token: () => settings.token });
}

window.app = {
  // The app leaves the screen. A companion says so before the system suspends it.
  async hide() {
    isShown = false;
    if (!companion) return;
    document.dispatchEvent(new Event("visibilitychange"));
    await pusher.flushed(FLUSH_MS);
    // The companion's beacon travels on a connection of its own.
    await new Promise((resolve) => setTimeout(resolve, BEACON_MS));
  },

  show() {
    isShown = true;
    shownAt = Date.now();
    document.dispatchEvent(new Event("visibilitychange"));
    for (const question of unread.splice(0)) read(question);
    for (const note of parent.notesOf(id)) if (seen.has(note.number)) tidy(note);
  },

  // The phone shows a banner above the open app.
  banner(note) {
    if (isShown && seen.has(note.number)) tidy(note);
  },
};
parent.appStarted(id);
