// One phone, drawn: its lock screen, its notifications, its app in a frame, and the buttons that do what a person does with a phone.

const BANNER_MS = 5000;
const milliseconds = (value) => (value < 1000 ? `${value} ms` : `${(value / 1000).toFixed(1)} s`);
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export class Device {
  constructor(phone, template, parent, wish) {
    Object.assign(this, { id: phone.id, wish, app: "open", isBusy: false, cards: new Map(), banners: new Set() });
    this.root = template.content.firstElementChild.cloneNode(true);
    this.root.id = `phone-${phone.id}`;
    this.root.classList.add(phone.apple ? "apple" : "android");
    this.at("h3 span").textContent = phone.caption;
    this.at("h3 small").textContent = `${phone.apple ? "iPhone" : "Android"}${phone.companion ? "" : ", no companion"}`;
    this.root.setAttribute("aria-label", phone.caption);
    for (const button of this.root.querySelectorAll("button")) button.onclick = () => this.act(button.dataset.do);
    parent.append(this.root);
    this.start();
    this.tick();
  }

  at(selector) { return this.root.querySelector(selector); }
  get isSilent() { return this.network === "silent"; }
  get isAway() { return this.app !== "open"; }

  // The app's icon is tapped: a new process, a new socket.
  start() {
    this.frame = document.createElement("iframe");
    this.frame.title = "The quiz's app";
    this.frame.src = `app.html#${this.id}`;
    this.at(".screen").prepend(this.frame);
  }

  started() { this.isStarted = true; }
  get running() { return this.isStarted ? this.frame?.contentWindow?.app : undefined; }

  async act(name) {
    if (this.isBusy) return;
    this.isBusy = true;
    this.root.querySelectorAll("button").forEach((button) => { button.disabled = true; });
    try {
      await this[name]();
    } finally {
      this.isBusy = false;
      this.buttons();
    }
  }

  // The system suspends the app a moment after it left the screen: its socket stays, and nobody reads it.
  async hide() {
    this.app = "background";
    this.mark();
    await this.running?.hide();
    if (!this.isSilent) await this.wish({ wish: "network", phone: this.id, mode: "held" });
  }

  // The system ends the process, and with it its connections, without a close frame.
  async close() {
    const wasOpen = this.app === "open";
    this.app = "closed";
    this.mark();
    if (wasOpen) await this.running?.hide();
    await this.wish({ wish: "cut", phone: this.id });
    if (!this.isSilent) await this.wish({ wish: "network", phone: this.id, mode: "open" });
    // The relay has ended the socket by now, so the frame's end says nothing more.
    setTimeout((frame) => frame?.remove(), 60, this.frame);
    this.isStarted = false;
    this.frame = undefined;
  }

  async silence() {
    await this.wish({ wish: "network", phone: this.id, mode: "silent" });
  }

  async back() {
    const wasAway = this.app === "background" || this.isSilent;
    await this.wish({ wish: "network", phone: this.id, mode: "open" });
    this.app = "open";
    this.mark();
    if (!this.frame) this.start();
    else if (wasAway) this.running?.show();
  }

  mark() {
    this.root.dataset.app = this.app;
    this.root.dataset.network = this.network ?? "open";
    write(this.at(".state"), { open: "", background: "App in the background", closed: "App closed" }[this.app]);
    this.buttons();
  }

  buttons() {
    const able = {
      hide: this.app === "open", close: this.app !== "closed", silence: !this.isSilent, back: this.app !== "open" || this.isSilent,
    };
    for (const button of this.root.querySelectorAll("button")) button.disabled = this.isBusy || !able[button.dataset.do];
  }

  tick() {
    const now = new Date();
    const time = now.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    this.root.querySelectorAll("time").forEach((node) => write(node, time));
    write(this.at(".date"), now.toLocaleDateString("en", { weekday: "long", day: "numeric", month: "long" }));
    setTimeout(() => this.tick(), 5000);
  }

  draw(phone, questions, now) {
    if (this.network !== phone.network) {
      this.network = phone.network;
      this.mark();
    }
    const question = questions.at(-1);
    this.notes(phone, questions, now);
    this.verdict(phone, question);
    this.trail(question?.trail[phone.user]);
  }

  // Notifications as the gateways took them, the newest first. One that the gateway still keeps is drawn as a ghost.
  notes(phone, questions, now) {
    const ids = new Set(phone.notes.map(({ nid }) => nid));
    for (const [nid, card] of this.cards) {
      if (ids.has(nid)) continue;
      this.cards.delete(nid);
      card.classList.add("gone");
      setTimeout(() => card.remove(), 350);
    }
    for (const note of phone.notes) {
      let card = this.cards.get(note.nid);
      if (!card) {
        card = document.createElement("div");
        for (const name of ["b", "p", "small"]) card.append(document.createElement(name));
        this.cards.set(note.nid, card);
      }
      // One that leaves its gateway rings as it arrives.
      const place = this.at(note.kept ? ".cloud" : ".notes");
      if (card.parentNode !== place) place.prepend(card);
      card.className = note.kept ? "note kept" : "note";
      write(card.children[0], note.title);
      write(card.children[1], note.body);
      write(card.children[2], this.remark(phone, note, questions));
      // A banner above an app that has the question on its screen goes away by itself.
      if (!note.kept && this.app === "open" && now - note.at > BANNER_MS && !this.banners.has(note.nid)) {
        this.banners.add(note.nid);
        this.running?.banner(note);
      }
    }
  }

  remark(phone, { number, kept }, questions) {
    if (kept) return `${phone.gateway} keeps it: no network`;
    const pushes = questions.find((one) => one.number === number)?.trail[phone.user]?.pushes ?? [];
    const isHeldBack = pushes.some((push) => push.device === this.id && push.purpose === "clear" && push.outcome === "silent budget");
    return isHeldBack ? "stays: one silent push in 20 minutes" : `by ${phone.gateway}`;
  }

  verdict(phone, question) {
    const node = this.at(".verdict");
    const told = question?.people[phone.user];
    const [kind, text] = told ? this.judged(phone, told, question.event !== null) : ["", ""];
    node.className = kind ? `verdict is-${kind}` : "verdict";
    write(node, text);
  }

  judged(phone, { surface, twice, after_ms: after, read_on: read, shown_on: shown }, isSent) {
    const [isRead, isShown] = [read.includes(phone.id), shown.includes(phone.id)];
    if (twice && isShown) return ["twice", "Told twice"];
    if (surface === "screen") return isRead ? ["screen", `On the screen · ${milliseconds(after)}`] : ["other", "Told on the other phone"];
    if (surface === "lock" && isShown) return ["lock", isRead ? "Notification, then read" : `Notification · ${milliseconds(after)}`];
    if (surface === "lock" || surface === "later" && !isRead) return ["other", "Told on the other phone"];
    if (surface === "later") return ["later", `Read late · ${milliseconds(after)}`];
    if (surface === "kept") return ["kept", `${phone.gateway} keeps the push`];
    return surface === "missed" ? ["missed", "Missed"] : ["waiting", isSent ? "Waiting …" : "Not sent yet"];
  }

  // The hub's own words, by its signed trail route.
  trail(row) {
    const push = row?.pushes.find(({ device, purpose }) => device === this.id && purpose === "notification");
    const tags = row ? [row.known, row.decision, row.state] : [];
    const line = this.at(".tags");
    if (line.dataset.text !== tags.join()) {
      line.dataset.text = tags.join();
      line.replaceChildren(...tags.filter(Boolean).map((tag) => Object.assign(document.createElement("code"), { textContent: tag })));
    }
    write(this.at(".why"), row ? row.why + (push ? `. Push: ${push.why}, ${push.state}` : "") : "");
  }
}
