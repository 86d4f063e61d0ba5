/* The far end of a push measurement: accepts every HTTP/2 POST, and costs as little as it can.
 *
 *   sink CERTIFICATE KEY STATS RECORD
 *
 * One thread, TLS, any port of 127.0.0.1, told on standard output. Answers like FCM, APNs and Google's token endpoint by the
 * path alone. STATS is a file of `struct stats`, mapped, so that reading it costs the sink nothing; while its `recording` is
 * set, every request is appended to RECORD (see `record`). Ends when standard input does.
 *
 * `tandem-gateways` cannot take its place: checking and keeping each request takes CPU time from the measured hub, and bare.c needs the
 * recorded requests. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { streams_max = 1000, window_bytes = 1 << 24, chunk_bytes = 1 << 16, path_bytes = 512, fields_max = 16 };

struct stats {
  uint64_t requests; /* answered, token requests not among them */
  uint64_t last_ns;  /* CLOCK_MONOTONIC of the last answer */
  uint64_t connections;
  uint64_t resumed;
  uint64_t recording; /* written by whoever measures */
  uint64_t recorded;
};

struct field {
  char name[40];
  char value[1024];
};

struct stream {
  char path[path_bytes];
  size_t path_length;
  /* Only while recording. */
  struct field *fields;
  int field_count;
  char *body;
  size_t body_length;
  const char *answer;
  size_t answer_left;
};

struct connection {
  int fd;
  SSL *ssl;
  nghttp2_session *session;
  int is_ready;
};

static volatile struct stats *stats;
static FILE *record_file;
static int epoll;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void put(const void *bytes, uint32_t length) {
  fwrite(&length, sizeof length, 1, record_file);
  fwrite(bytes, 1, length, record_file);
}

/* Path, number of fields, names and values, body; each text behind its length. */
static void record(const struct stream *stream) {
  put(stream->path, (uint32_t)stream->path_length);
  uint32_t count = (uint32_t)stream->field_count;
  fwrite(&count, sizeof count, 1, record_file);
  for(int i = 0; i < stream->field_count; i++) {
    put(stream->fields[i].name, (uint32_t)strlen(stream->fields[i].name));
    put(stream->fields[i].value, (uint32_t)strlen(stream->fields[i].value));
  }
  put(stream->body, (uint32_t)stream->body_length);
  stats->recorded++;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context) {
  (void)context;
  if(frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    struct stream *stream = calloc(1, sizeof *stream);
    if(stats->recording) stream->fields = calloc(fields_max, sizeof *stream->fields);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
  }
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *context) {
  (void)flags, (void)context;
  struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if(!stream) return 0;
  if(name_length == 5 && memcmp(name, ":path", 5) == 0 && value_length < path_bytes) {
    memcpy(stream->path, value, value_length);
    stream->path_length = value_length;
  } else if(stream->fields && name[0] != ':' && stream->field_count < fields_max && name_length < 40 && value_length < 1024) {
    struct field *field = &stream->fields[stream->field_count++];
    memcpy(field->name, name, name_length);
    memcpy(field->value, value, value_length);
  }
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *context) {
  (void)flags, (void)context;
  struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
  if(stream && stream->fields) {
    stream->body = realloc(stream->body, stream->body_length + length);
    memcpy(stream->body + stream->body_length, data, length);
    stream->body_length += length;
  }
  return 0;
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length, uint32_t *flags,
                           nghttp2_data_source *source, void *context) {
  (void)session, (void)id, (void)context;
  struct stream *stream = source->ptr;
  size_t taken = stream->answer_left < length ? stream->answer_left : length;
  memcpy(buffer, stream->answer, taken);
  stream->answer += taken;
  stream->answer_left -= taken;
  if(stream->answer_left == 0) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)taken;
}

#define FIELD(n, v) {(uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}

static void answer(nghttp2_session *session, int32_t id, struct stream *stream) {
  static const char accepted[] = "{\"name\":\"projects/bench/messages/0:1700000000000000%0\"}";
  static const char token[] = "{\"access_token\":\"ya29.bench\",\"expires_in\":3599,\"token_type\":\"Bearer\"}";
  if(stream->path_length > 8 && memcmp(stream->path, "/3/devic", 8) == 0) {
    nghttp2_nv fields[] = {FIELD(":status", "200"), FIELD("apns-id", "0e6e3e3e-0000-8000-8000-000000000000")};
    nghttp2_submit_response(session, id, fields, 2, NULL);
  } else {
    int is_token = stream->path_length > 2 && stream->path[1] == 't';
    stream->answer = is_token ? token : accepted;
    stream->answer_left = is_token ? sizeof token - 1 : sizeof accepted - 1;
    nghttp2_nv fields[] = {FIELD(":status", "200"), FIELD("content-type", "application/json; charset=UTF-8")};
    nghttp2_data_provider body = {.source = {.ptr = stream}, .read_callback = read_answer};
    nghttp2_submit_response(session, id, fields, 2, &body);
    if(is_token) return;
  }
  if(stream->fields) record(stream);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  stats->last_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  stats->requests++;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context) {
  (void)context;
  if((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if(stream) answer(session, frame->hd.stream_id, stream);
  }
  return 0;
}

static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int code, void *context) {
  (void)session, (void)context;
  fprintf(stderr, "sink: a frame of type %d is invalid: %s\n", frame->hd.type, nghttp2_strerror(code));
  return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context) {
  (void)session, (void)context;
  if(frame->hd.type == NGHTTP2_GOAWAY) fprintf(stderr, "sink: sent GOAWAY, error code %u\n", frame->goaway.error_code);
  return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *context) {
  (void)code, (void)context;
  struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
  if(stream) {
    free(stream->fields);
    free(stream->body);
    free(stream);
  }
  return 0;
}

static void end(struct connection *connection) {
  if(connection->session) nghttp2_session_del(connection->session);
  SSL_free(connection->ssl);
  close(connection->fd);
  free(connection);
}

static int begin_session(struct connection *connection) {
  static nghttp2_session_callbacks *callbacks;
  if(!callbacks) {
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
  }
  /* libcurl 7.88 sends a RST_STREAM behind every answer, which costs nothing here, but which nghttp2 would soon take for an
   * attack and answer with GOAWAY. */
  nghttp2_option *option;
  nghttp2_option_new(&option);
  nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
  nghttp2_session_server_new2(&connection->session, callbacks, connection, option);
  nghttp2_option_del(option);
  nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams_max},
                                       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
  nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, 2);
  nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, window_bytes);
  stats->connections++;
  if(SSL_session_reused(connection->ssl)) stats->resumed++;
  connection->is_ready = 1;
  return 0;
}

/* All that is to be written, in pieces of up to 64 KiB: a record per frame would be what is measured. Blocking writes: the
 * other side reads. */
static int flush(struct connection *connection) {
  static uint8_t gathered[chunk_bytes];
  size_t used = 0;
  for(;;) {
    const uint8_t *bytes;
    ssize_t length = nghttp2_session_mem_send(connection->session, &bytes);
    if(length < 0) return -1;
    if(length == 0 || used + (size_t)length > sizeof gathered) {
      for(size_t done = 0; done < used;) {
        int written = SSL_write(connection->ssl, gathered + done, (int)(used - done));
        if(written <= 0) {
          int reason = SSL_get_error(connection->ssl, written);
          if(reason != SSL_ERROR_WANT_WRITE && reason != SSL_ERROR_WANT_READ) return -1;
          continue;
        }
        done += (size_t)written;
      }
      used = 0;
    }
    if(length == 0) return 0;
    memcpy(gathered + used, bytes, (size_t)length);
    used += (size_t)length;
  }
}

static int work(struct connection *connection) {
  static uint8_t buffer[chunk_bytes];
  if(!connection->is_ready) {
    int done = SSL_accept(connection->ssl);
    if(done <= 0) {
      int reason = SSL_get_error(connection->ssl, done);
      ERR_clear_error();
      return reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? 0 : -1;
    }
    begin_session(connection);
  }
  for(;;) {
    int length = SSL_read(connection->ssl, buffer, sizeof buffer);
    if(length <= 0) {
      int reason = SSL_get_error(connection->ssl, length);
      ERR_clear_error();
      if(reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE) return -1;
      break;
    }
    ssize_t read = nghttp2_session_mem_recv(connection->session, buffer, (size_t)length);
    if(read < 0) {
      fprintf(stderr, "sink: %s\n", nghttp2_strerror((int)read));
      return -1;
    }
  }
  return flush(connection);
}

static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length, const unsigned char *in,
                           unsigned int in_length, void *context) {
  (void)ssl, (void)context;
  return nghttp2_select_next_protocol((unsigned char **)out, out_length, in, in_length) == 1 ? SSL_TLSEXT_ERR_OK
                                                                                               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int main(int argc, char **argv) {
  if(argc != 5) {
    fprintf(stderr, "usage: sink CERTIFICATE KEY STATS RECORD\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  int file = open(argv[3], O_RDWR | O_CREAT, 0600);
  if(file < 0 || ftruncate(file, sizeof(struct stats)) != 0) fail(argv[3]);
  stats = mmap(NULL, sizeof(struct stats), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if(stats == MAP_FAILED) fail("mmap");
  record_file = fopen(argv[4], "wb");
  if(!record_file) fail(argv[4]);

  SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
  if(SSL_CTX_use_certificate_chain_file(tls, argv[1]) != 1 || SSL_CTX_use_PrivateKey_file(tls, argv[2], SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    return 1;
  }
  SSL_CTX_set_session_id_context(tls, (const unsigned char *)"sink", 4);
  SSL_CTX_set_alpn_select_cb(tls, select_protocol, NULL);

  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if(bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0) fail("listen");
  socklen_t size = sizeof address;
  getsockname(listener, (struct sockaddr *)&address, &size);
  printf("ready at port %d\n", ntohs(address.sin_port));
  fflush(stdout);

  epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  static int input = 0;
  struct epoll_event input_event = {.events = EPOLLIN, .data.ptr = &input};
  epoll_ctl(epoll, EPOLL_CTL_ADD, input, &input_event);

  for(;;) {
    struct epoll_event events[64];
    int count = epoll_wait(epoll, events, 64, -1);
    if(count < 0 && errno != EINTR) fail("epoll_wait");
    for(int i = 0; i < count; i++) {
      if(events[i].data.ptr == &listener) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if(fd < 0) continue;
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *connection = calloc(1, sizeof *connection);
        connection->fd = fd;
        connection->ssl = SSL_new(tls);
        SSL_set_fd(connection->ssl, fd);
        struct epoll_event new_event = {.events = EPOLLIN, .data.ptr = connection};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &new_event);
      } else if(events[i].data.ptr == &input) {
        char byte;
        if(read(0, &byte, 1) <= 0) return 0;
        /* Any byte: what was recorded is to be in the file. */
        fflush(record_file);
        printf("flushed\n");
        fflush(stdout);
      } else if(work(events[i].data.ptr) != 0) {
        end(events[i].data.ptr);
      }
    }
  }
}
