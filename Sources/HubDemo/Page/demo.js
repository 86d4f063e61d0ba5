// The demo's page: draws the stage that the demo's own process tells, and sends the visitor's wishes. It counts nothing itself.
import { Device } from "./device.js";

const POLL_MS = 80;
const HIDDEN_POLL_MS = 1000;
const TWICE_MS = 15000;
const byId = (id) => document.getElementById(id);
const devices = new Map();
let stage;
let twiceSeen = 0;
let twiceUntil = 0;

export const wish = (body) =>
  fetch("wish", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// For the apps in their frames.
window.notesOf = (id) => (stage?.phones.find((phone) => phone.id === id)?.notes ?? []).filter((note) => !note.kept);
window.appStarted = (id) => devices.get(id)?.started();

const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

const hint = () => {
  const last = stage.questions.at(-1);
  const all = [...devices.values()];
  if (stage.hub === "down") {
    const isWaiting = last && !last.event;
    return isWaiting ? "The question waits at the quiz master's backend. Restart the hub." : "Ask while the hub is dead, then restart it.";
  }
  if (stage.score.told_twice > twiceSeen) {
    twiceSeen = stage.score.told_twice;
    twiceUntil = Date.now() + TWICE_MS;
  }
  if (Date.now() < twiceUntil) return "Told twice: an app without the companion read it and fell silent, and the hub could not know why.";
  if (!last) return "Four real clients, four real sockets. Ask!";
  if (all.some((device) => device.isSilent)) return "Ask, wait two seconds, and let the phone come back.";
  if (all.some((device) => device.isAway)) return "Ask again: the phone rings. Then let it come back.";
  if (last.number < 3) return "Now put a phone to the background, and ask again.";
  return "Try airplane mode. Or kill the hub right after a question.";
};

const draw = () => {
  const { score, hub, questions } = stage;
  for (const [id, value] of [["told", score.told], ["twice", score.told_twice], ["missed", score.missed], ["way", score.under_way]]) {
    write(byId(id), String(value));
    byId(id).parentNode.classList.toggle("zero", value === 0);
  }
  const last = questions.at(-1);
  if (last) write(byId("asked"), `${last.number}. ${last.text}`);
  write(byId("hint"), hint());
  byId("hub").dataset.life = hub;
  write(byId("life"), { up: "running", starting: "starting …", down: "killed" }[hub]);
  byId("kill").hidden = hub === "down";
  byId("kill").disabled = hub !== "up";
  byId("restart").hidden = hub !== "down";
  for (const phone of stage.phones) {
    if (!devices.has(phone.id)) devices.set(phone.id, new Device(phone, byId("phone"), byId("phones"), wish));
    devices.get(phone.id).draw(phone, questions, stage.now);
  }
};

const poll = async () => {
  try {
    const answer = await fetch("state");
    if (!answer.ok) throw new Error();
    stage = await answer.json();
    document.body.classList.remove("over");
    draw();
  } catch {
    document.body.classList.add("over");
    write(byId("hint"), "The demo has ended. Start it again with: tandem demo");
  }
  setTimeout(poll, document.hidden ? HIDDEN_POLL_MS : POLL_MS);
};

byId("ask").onclick = () => wish({ wish: "ask" });
byId("kill").onclick = () => wish({ wish: "kill" });
byId("restart").onclick = () => wish({ wish: "restart" });
poll();
