// Not pusher-js: as little as it takes to do with the hub's frames what pusher-js 8.6 does, in the same order, with the same options.
class Pusher {
  static VERSION = "stand-in";

  constructor(key, { wsHost, wsPort, channelAuthorization }) {
    this.endpoint = channelAuthorization.endpoint;
    this.handlers = {};
    this.socket = new WebSocket(`ws://${wsHost}:${wsPort}/app/${key}?protocol=7&client=js&version=8.6.0&flash=false`);
    this.socket.onmessage = message => this.received(JSON.parse(message.data));
  }

  subscribe(channel) {
    const handlers = this.handlers[channel] = {};
    const subscription = {
      name: channel,
      subscribed: false,
      bind: (event, handler) => { (handlers[event] ??= []).push(handler); },
      unbind: (event, handler) => { handlers[event] = (handlers[event] ?? []).filter((one) => one !== handler); },
      trigger: (event, data) => this.send(event, data, channel),
    };
    subscription.bind("pusher:subscription_succeeded", () => { subscription.subscribed = true; });
    return subscription;
  }

  send(event, data, channel) { this.socket.send(JSON.stringify({ event, data, channel })); }

  received({ event, channel, data }) {
    if (typeof data === "string") data = JSON.parse(data);
    if (event === "pusher:connection_established") {
      this.activityTimeout = data.activity_timeout;
      for (const name in this.handlers) this.authorize(data.socket_id, name);
    }
    // It asks by itself only when nothing has come for a while.
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send("pusher:ping", {}), this.activityTimeout * 1000);
    if (event === "pusher:ping") this.send("pusher:pong", {});
    for (const handler of this.handlers[channel]?.[event.replace("pusher_internal:", "pusher:")] ?? []) handler(data);
  }

  async authorize(socket, channel) {
    const answer = await fetch(this.endpoint, { method: "POST", body: new URLSearchParams({ socket_id: socket, channel_name: channel }) });
    this.send("pusher:subscribe", { ...await answer.json(), channel });
  }
}
