/* The least that a WebSocket broadcaster costs: the floor of loadtest/compare.sh.
 *
 *   floor [--join] [--tls CERTIFICATE KEY]
 *
 * One thread, one epoll, any port of 127.0.0.1, told on standard output. `GET /channel/NAME` with an upgrade subscribes,
 * `POST /publish/NAME` with a Content-Length is framed once and sent to every subscriber, `GET /counts` tells how many
 * deliveries, send calls and loop turns there were. With --tls all of it goes through OpenSSL. Without --join every event is one
 * send() per subscriber at once; with it the events of one loop turn are joined, and each subscriber gets one send() at the end of
 * the turn. It checks nothing that a server has to check: no sub-protocols, no limits of rates, no UTF-8. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  events_max = 1024,
  read_bytes = 1 << 16,       /* one read */
  inbox_bytes_max = 1 << 17,  /* an unfinished request or message of a client */
  outbox_bytes_max = 1 << 26, /* of one connection that does not read */
  batch_bytes_max = 1 << 16,  /* joined events beyond this are sent before the turn's end */
  name_bytes = 200,
};

struct channel {
  char name[name_bytes];
  int *fds;
  size_t count, room;
  char *batch;
  size_t batch_length, batch_room, batch_events;
  int is_dirty; /* on the list of the turn's end */
  struct channel *next, *next_dirty;
};

struct connection {
  SSL *secure; /* with --tls */
  char *inbox, *outbox;
  size_t inbox_length, outbox_length;
  struct channel *channel;
  uint32_t place;    /* in the channel's fds */
  uint8_t is_socket; /* upgraded */
};

static struct connection *connections;
static size_t connection_room;
static struct channel *channels, *dirty;
static int epoll, is_joining;
static SSL_CTX *tls; /* NULL: plain connections */
static uint64_t deliveries, sends, turns;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void *grown(void *bytes, size_t size) {
  void *more = realloc(bytes, size);
  if (!more) fail("memory");
  return more;
}

static struct channel *channel_named(const char *name, size_t length) {
  if (length == 0 || length >= name_bytes) return NULL;
  for (struct channel *channel = channels; channel; channel = channel->next)
    if (strlen(channel->name) == length && memcmp(channel->name, name, length) == 0) return channel;
  struct channel *channel = calloc(1, sizeof *channel);
  if (!channel) fail("memory");
  memcpy(channel->name, name, length);
  channel->next = channels;
  return channels = channel;
}

static void watch(int fd, int operation, uint32_t events) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll, operation, fd, &event)) fail("epoll_ctl");
}

static void end(int fd) {
  struct connection *connection = &connections[fd];
  if (connection->channel) {
    struct channel *channel = connection->channel;
    int moved = channel->fds[--channel->count];
    channel->fds[connection->place] = moved;
    connections[moved].place = connection->place;
  }
  free(connection->inbox);
  free(connection->outbox);
  SSL_free(connection->secure);
  memset(connection, 0, sizeof *connection);
  close(fd);
}

/* As recv() and send(), through OpenSSL with --tls. */
static ssize_t outcome(SSL *secure, int got) {
  if (got > 0) return got;
  int why = SSL_get_error(secure, got);
  errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
  return why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static ssize_t receive(int fd, char *bytes, size_t length) {
  SSL *secure = connections[fd].secure;
  return secure ? outcome(secure, SSL_read(secure, bytes, (int)length)) : recv(fd, bytes, length, MSG_DONTWAIT);
}

static ssize_t transmit(int fd, const char *bytes, size_t length) {
  SSL *secure = connections[fd].secure;
  return secure ? outcome(secure, SSL_write(secure, bytes, (int)length)) : send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* False when the connection is no more. */
static int write_out(int fd, const char *bytes, size_t length) {
  struct connection *connection = &connections[fd];
  ssize_t sent = 0;
  if (connection->outbox_length == 0) {
    sent = transmit(fd, bytes, length);
    sends++;
    if (sent == (ssize_t)length) return 1;
    if (sent < 0 && errno != EAGAIN) return 0;
    if (sent < 0) sent = 0;
    watch(fd, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  }
  size_t left = length - (size_t)sent;
  if (connection->outbox_length + left > outbox_bytes_max) return 0;
  connection->outbox = grown(connection->outbox, connection->outbox_length + left);
  memcpy(connection->outbox + connection->outbox_length, bytes + sent, left);
  connection->outbox_length += left;
  return 1;
}

static int drain(int fd) {
  struct connection *connection = &connections[fd];
  ssize_t sent = transmit(fd, connection->outbox, connection->outbox_length);
  sends++;
  if (sent < 0) return errno == EAGAIN;
  connection->outbox_length -= (size_t)sent;
  memmove(connection->outbox, connection->outbox + sent, connection->outbox_length);
  if (connection->outbox_length == 0) {
    free(connection->outbox);
    connection->outbox = NULL;
    watch(fd, EPOLL_CTL_MOD, EPOLLIN);
  }
  return 1;
}

static void fan_out(struct channel *channel, const char *bytes, size_t length, size_t events) {
  deliveries += events * channel->count;
  /* From the last: ending one moves the last one to its place. */
  for (size_t place = channel->count; place-- > 0;) {
    int fd = channel->fds[place];
    if (!write_out(fd, bytes, length)) end(fd);
  }
}

static void flush(struct channel *channel) {
  fan_out(channel, channel->batch, channel->batch_length, channel->batch_events);
  channel->batch_length = channel->batch_events = 0;
}

static size_t head_of_frame(uint8_t *head, uint8_t opcode, size_t length) {
  head[0] = 0x80 | opcode;
  if (length < 126) {
    head[1] = (uint8_t)length;
    return 2;
  }
  if (length < 65536) {
    head[1] = 126;
    head[2] = (uint8_t)(length >> 8);
    head[3] = (uint8_t)length;
    return 4;
  }
  head[1] = 127;
  for (int index = 0; index < 8; index++) head[2 + index] = (uint8_t)((uint64_t)length >> (56 - 8 * index));
  return 10;
}

static void publish(struct channel *channel, const char *body, size_t length) {
  uint8_t head[10];
  size_t head_length = head_of_frame(head, 1, length), frame_length = head_length + length;
  if (channel->batch_length + frame_length > channel->batch_room)
    channel->batch = grown(channel->batch, channel->batch_room = channel->batch_length + frame_length + 4096);
  memcpy(channel->batch + channel->batch_length, head, head_length);
  memcpy(channel->batch + channel->batch_length + head_length, body, length);
  channel->batch_length += frame_length;
  channel->batch_events++;
  if (!is_joining || channel->batch_length >= batch_bytes_max) {
    flush(channel);
  } else if (!channel->is_dirty) {
    channel->is_dirty = 1;
    channel->next_dirty = dirty;
    dirty = channel;
  }
}

static int answer(int fd, const char *status, const char *body) {
  char text[512];
  int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
  return write_out(fd, text, (size_t)length);
}

/* A header's value within a head that ends with a NUL, or NULL. */
static const char *header(const char *head, const char *name) {
  size_t length = strlen(name);
  for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
    const char *start = line + 2;
    if (strncasecmp(start, name, length) == 0 && start[length] == ':') {
      start += length + 1;
      return start + strspn(start, " ");
    }
  }
  return NULL;
}

static int upgrade(int fd, const char *head, const char *name, size_t length) {
  const char *key = header(head, "Sec-WebSocket-Key");
  struct channel *channel = channel_named(name, length);
  size_t key_length = key ? strcspn(key, " \r") : 0;
  if (!channel || key_length == 0 || key_length > 64) return answer(fd, "400 Bad Request", "{}") && 0;
  char text[64 + 37];
  int text_length = snprintf(text, sizeof text, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", (int)key_length, key);
  unsigned char digest[SHA_DIGEST_LENGTH], accept[32];
  SHA1((const unsigned char *)text, (size_t)text_length, digest);
  EVP_EncodeBlock(accept, digest, sizeof digest);
  char reply[256];
  int reply_length = snprintf(reply, sizeof reply, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept);
  if (channel->count == channel->room)
    channel->fds = grown(channel->fds, (channel->room = channel->room * 2 + 64) * sizeof *channel->fds);
  if (channel->batch_length) flush(channel);
  struct connection *connection = &connections[fd];
  connection->channel = channel;
  connection->place = (uint32_t)channel->count;
  connection->is_socket = 1;
  channel->fds[channel->count++] = fd;
  return write_out(fd, reply, (size_t)reply_length);
}

/* How many bytes of `bytes` were taken: 0 when more are needed, -1 when the connection is to end. */
static ssize_t request(int fd, char *bytes, size_t length) {
  char *blank = memmem(bytes, length, "\r\n\r\n", 4);
  if (!blank) return length > 8192 ? -1 : 0;
  size_t head_length = (size_t)(blank - bytes) + 4;
  char saved = bytes[head_length - 1];
  bytes[head_length - 1] = 0;
  const char *text = header(bytes, "Content-Length");
  size_t body_length = text ? strtoul(text, NULL, 10) : 0, taken = head_length + body_length;
  int is_well = 1;
  if (body_length > inbox_bytes_max - 8192) {
    is_well = 0;
  } else if (length < taken) {
    taken = 0;
  } else if (strncmp(bytes, "POST /publish/", 14) == 0) {
    struct channel *channel = channel_named(bytes + 14, strcspn(bytes + 14, " ?"));
    /* The answer first: its publisher sends the next while the event goes out, as the events of one turn are to be joined. */
    is_well = answer(fd, channel ? "200 OK" : "400 Bad Request", "{}");
    if (channel) publish(channel, bytes + head_length, body_length);
  } else if (strncmp(bytes, "GET /channel/", 13) == 0) {
    is_well = upgrade(fd, bytes, bytes + 13, strcspn(bytes + 13, " ?"));
  } else if (strncmp(bytes, "GET /counts ", 12) == 0) {
    char counts[128];
    snprintf(counts, sizeof counts, "{\"deliveries\": %lu, \"sends\": %lu, \"turns\": %lu}", deliveries, sends, turns);
    is_well = answer(fd, "200 OK", counts);
  } else {
    is_well = answer(fd, "404 Not Found", "{}");
  }
  bytes[head_length - 1] = saved;
  return is_well ? (ssize_t)taken : -1;
}

/* The same for a client's frame: PING and CLOSE are answered, the rest is read and dropped. */
static ssize_t frame(int fd, uint8_t *bytes, size_t length) {
  if (length < 6) return 0;
  size_t payload = bytes[1] & 0x7f, head = 6;
  if (!(bytes[1] & 0x80) || payload == 127) return -1;
  if (payload == 126) {
    if (length < 8) return 0;
    payload = (size_t)bytes[2] << 8 | bytes[3];
    head = 8;
  }
  if (length < head + payload) return 0;
  uint8_t opcode = bytes[0] & 0x0f;
  if (opcode == 8 || opcode == 9) {
    uint8_t reply[2 + 125];
    if (payload > 125) return -1;
    size_t start = head_of_frame(reply, opcode == 8 ? 8 : 10, payload);
    for (size_t index = 0; index < payload; index++) reply[start + index] = bytes[head + index] ^ bytes[head - 4 + index % 4];
    if (!write_out(fd, (char *)reply, start + payload) || opcode == 8) return -1;
  }
  return (ssize_t)(head + payload);
}

static int take(int fd, char *bytes, size_t length) {
  while (length > 0) {
    ssize_t taken = connections[fd].is_socket ? frame(fd, (uint8_t *)bytes, length) : request(fd, bytes, length);
    if (taken < 0) return 0;
    if (taken == 0) break;
    bytes += taken;
    length -= (size_t)taken;
  }
  struct connection *connection = &connections[fd];
  if (length > inbox_bytes_max) return 0;
  char *rest = NULL;
  if (length > 0) memcpy(rest = grown(NULL, length), bytes, length);
  free(connection->inbox);
  connection->inbox = rest;
  connection->inbox_length = length;
  return 1;
}

static int read_in(int fd) {
  static char bytes[inbox_bytes_max + read_bytes];
  struct connection *connection = &connections[fd];
  /* OpenSSL may hold bytes that epoll does not see any more. */
  do {
    size_t kept = connection->inbox_length;
    if (kept > 0) memcpy(bytes, connection->inbox, kept);
    ssize_t got = receive(fd, bytes + kept, read_bytes);
    if (got < 0) return errno == EAGAIN;
    if (got == 0 || !take(fd, bytes, kept + (size_t)got)) return 0;
  } while (connection->secure && SSL_pending(connection->secure) > 0);
  return 1;
}

static void accept_all(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == ECONNABORTED) return;
      fail("accept");
    }
    if ((size_t)fd >= connection_room) {
      close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (tls) {
      SSL *secure = connections[fd].secure = SSL_new(tls);
      if (!secure || !SSL_set_fd(secure, fd)) fail("TLS");
      SSL_set_accept_state(secure);
    }
    watch(fd, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static void secure_with(const char *certificate, const char *key) {
  tls = SSL_CTX_new(TLS_server_method());
  if (!tls || SSL_CTX_use_certificate_chain_file(tls, certificate) != 1 || SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1)
    fail("certificate or key");
  SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}

int main(int count, char **arguments) {
  for (int index = 1; index < count; index++) {
    if (strcmp(arguments[index], "--join") == 0) is_joining = 1;
    if (strcmp(arguments[index], "--tls") == 0 && index + 2 < count) secure_with(arguments[index + 1], arguments[index + 2]);
  }
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) fail("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit)) fail("setrlimit");
  connection_room = limit.rlim_max < 1 << 20 ? limit.rlim_max : 1 << 20;
  connections = calloc(connection_room, sizeof *connections);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (!connections || listener < 0 || epoll < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096) ||
      getsockname(listener, (struct sockaddr *)&address, &size))
    fail("listen");
  watch(listener, EPOLL_CTL_ADD, EPOLLIN);
  printf("ready at %s://127.0.0.1:%d\n", tls ? "https" : "http", ntohs(address.sin_port));
  fflush(stdout);
  static struct epoll_event events[events_max];
  for (;;) {
    int ready = epoll_wait(epoll, events, events_max, -1);
    if (ready < 0 && errno != EINTR) fail("epoll_wait");
    turns++;
    for (int index = 0; index < ready; index++) {
      int fd = events[index].data.fd;
      if (fd == listener) {
        accept_all(listener);
        continue;
      }
      int is_well = 1;
      if (events[index].events & EPOLLOUT && connections[fd].outbox_length > 0) is_well = drain(fd);
      if (is_well && events[index].events & ~EPOLLOUT) is_well = read_in(fd);
      if (!is_well) end(fd);
    }
    while (dirty) {
      struct channel *channel = dirty;
      dirty = channel->next_dirty;
      channel->is_dirty = 0;
      if (channel->batch_length) flush(channel);
    }
  }
}
