// A small client of Pusher's protocol, version 7: it connects and comes back, subscribes to private and presence channels, and answers the
// hub's `pusher:ping`. It has the part of pusher-js that apps of the demo and the hub's companion use.

const CONNECT_MS = 4000;
const PONG_MS = 30000;
const RETRIES_MS = [50, 250, 500, 1000];

class Channel {
  constructor(pusher, name) {
    Object.assign(this, { pusher, name, subscribed: false, handlers: new Map() });
  }

  bind(event, handler) {
    this.handlers.set(event, [...(this.handlers.get(event) ?? []), handler]);
  }

  unbind(event, handler) {
    this.handlers.set(event, (this.handlers.get(event) ?? []).filter((one) => one !== handler));
  }

  trigger(event, data) {
    return this.pusher.send({ event, data, channel: this.name });
  }

  emit(event, data) {
    for (const handler of this.handlers.get(event) ?? []) handler(data);
  }
}

export class Pusher {
  // `authorize(socketId, channelName)` comes to what the authorization endpoint answers; `lost()` hears of a connection's end.
  constructor(key, { host, port, authorize, lost }) {
    Object.assign(this, { key, host, port, authorize, lost, channels: new Map(), failures: 0, flushes: [] });
    this.connect();
  }

  subscribe(name) {
    const channel = new Channel(this, name);
    this.channels.set(name, channel);
    if (this.socketId) this.join(channel);
    return channel;
  }

  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  // Comes to true once the hub has read all that was sent before; false when it does not answer in time.
  flushed(milliseconds) {
    if (!this.send({ event: "pusher:ping", data: {} })) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.flushes.push(resolve);
      setTimeout(resolve, milliseconds, false);
    });
  }

  connect() {
    const socket = new WebSocket(`ws://${this.host}:${this.port}/app/${this.key}?protocol=7&client=js&version=8.4.0&flash=false`);
    this.socket = socket;
    this.wait(CONNECT_MS, () => socket.close());
    socket.onmessage = ({ data }) => this.received(JSON.parse(data));
    socket.onclose = ({ code }) => {
      clearTimeout(this.timer);
      this.socketId = undefined;
      for (const channel of this.channels.values()) channel.subscribed = false;
      this.lost();
      // 4000 to 4099: the hub does not want this client. Any other end: it tries again.
      if (code >= 4000 && code < 4100) return;
      setTimeout(() => this.connect(), RETRIES_MS[Math.min(this.failures, RETRIES_MS.length - 1)]);
      this.failures += 1;
    };
  }

  wait(milliseconds, action) {
    clearTimeout(this.timer);
    this.timer = setTimeout(action, milliseconds);
  }

  received({ event, channel: name, data }) {
    const content = typeof data === "string" ? JSON.parse(data) : data;
    if (event === "pusher:connection_established") {
      this.socketId = content.socket_id;
      this.activityMs = content.activity_timeout * 1000;
      this.failures = 0;
      for (const channel of this.channels.values()) this.join(channel);
    }
    this.wait(this.activityMs, () => {
      this.send({ event: "pusher:ping", data: {} });
      this.wait(PONG_MS, () => this.socket.close());
    });
    if (event === "pusher:ping") this.send({ event: "pusher:pong", data: {} });
    if (event === "pusher:pong") for (const resolve of this.flushes.splice(0)) resolve(true);
    const channel = this.channels.get(name);
    if (!channel) return;
    if (event === "pusher_internal:subscription_succeeded") channel.subscribed = true;
    channel.emit(event.replace("pusher_internal:", "pusher:"), content);
  }

  async join(channel) {
    const socketId = this.socketId;
    try {
      const answer = await this.authorize(socketId, channel.name);
      if (socketId === this.socketId) this.send({ event: "pusher:subscribe", data: { ...answer, channel: channel.name } });
    } catch {
      // Without an authorization the connection is of no use: a new one asks again.
      if (socketId === this.socketId) this.socket.close();
    }
  }
}
