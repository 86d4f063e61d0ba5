// Tandem's companion of pusher-js: it tells the hub whether the page is on the screen, and confirms notifications.
//
//   const companion = tandem(pusher, channel, { hub: "https://hub.example", token: () => participantToken });
//   companion.received(nid);       // the `nid` of a notification's data
//   companion.pushToken(fcmToken); // at every start, and when it changes; null: the person wants no notifications
//   companion.end();               // at a logout, before the token is thrown away
//
// `channel` is a private or presence channel of `pusher`. `token` is the participant token, or a function that returns the present one.

export function tandem(pusher, channel, { hub, token }) {
  const bearer = typeof token === "function" ? token : () => token;
  const tab = Math.random(); // A page without TLS has no `crypto.randomUUID`.
  // Other pages of the person in this browser, and whether they are on the screen.
  const others = new Map();
  const person = JSON.parse(atob(bearer().split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).sub;
  const pages = new BroadcastChannel(`tandem ${hub} ${channel.name} ${person}`);
  const isShown = () => document.visibilityState === "visible";

  const call = async (method, path, body) => {
    const headers = { Authorization: `Bearer ${bearer()}`, "Content-Type": "application/json" };
    const answer = await fetch(hub + path, { method, headers, body: JSON.stringify(body), keepalive: true });
    return answer.ok;
  };

  // The socket carries this page's own state. The hub takes the best one of the person's connections.
  const say = () => {
    if (channel.subscribed) channel.trigger("client-app-state", { state: isShown() ? "foreground" : "background" });
  };

  // A page may be frozen before its frame is written. A beacon still leaves, but speaks for all pages.
  const sayByBeacon = () => {
    if ([...others.values()].includes(true)) return;
    navigator.sendBeacon(`${hub}/me/state`, JSON.stringify({ token: bearer(), state: "background" }));
  };

  // Another page's beacon may have spoken for this one, and may still be on its way.
  let timer;
  const sayTwice = () => {
    say();
    clearTimeout(timer);
    timer = setTimeout(say, 1000);
  };

  const changed = () => {
    sayTwice();
    if (!isShown()) sayByBeacon();
    pages.postMessage({ tab, isShown: isShown() });
  };
  const left = () => {
    pages.postMessage({ tab, isShown: false, isOver: true });
    sayByBeacon();
  };

  pages.onmessage = ({ data }) => {
    if (data.isOver) others.delete(data.tab);
    else others.set(data.tab, data.isShown);
    if (data.isNew) pages.postMessage({ tab, isShown: isShown() });
    if (!data.isShown && isShown()) sayTwice();
  };
  channel.bind("pusher:subscription_succeeded", say);
  document.addEventListener("visibilitychange", changed);
  addEventListener("pagehide", left);
  addEventListener("pageshow", changed);
  pages.postMessage({ tab, isShown: isShown(), isNew: true });
  say();
  return {
    received: (nid) => call("POST", "/me/receipts", { nid, status: "received" }),
    pushToken: (token) =>
      call("PUT", "/me/device", token ? { token, platform: "web", notifications: true } : { notifications: false }),
    end() {
      clearTimeout(timer);
      channel.unbind("pusher:subscription_succeeded", say);
      document.removeEventListener("visibilitychange", changed);
      removeEventListener("pagehide", left);
      removeEventListener("pageshow", changed);
      left();
      pages.close();
    },
  };
}
