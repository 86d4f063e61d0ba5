#ifndef TANDEM_CLIBCURL_SHIM_H
#define TANDEM_CLIBCURL_SHIM_H

/* libcurl sets and reads its options through variadic functions, which Swift cannot import. Each argument type gets
 * one typed function here; the parentheses around the callee step over libcurl's type-checking macros, which want the
 * option as a literal. */

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static inline CURLcode tandem_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

/* True when this libcurl speaks HTTP/2 and TLS and does not block its thread while it resolves names. */
static inline int tandem_curl_has_what_we_need(void) {
  const int needed = CURL_VERSION_HTTP2 | CURL_VERSION_SSL | CURL_VERSION_ASYNCHDNS;
  const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
  return version != NULL && (version->features & needed) == needed;
}

/* Names the calling thread; the system keeps 15 bytes. */
static inline void tandem_curl_name_thread(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }

static inline CURLcode tandem_curl_set_long(CURL *easy, CURLoption option, long value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tandem_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return (curl_easy_setopt)(easy, option, value);
}
/* libcurl copies the string, except for CURLOPT_POSTFIELDS, which tandem_curl_set_pointer sets. */
static inline CURLcode tandem_curl_set_string(CURL *easy, CURLoption option, const char *value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tandem_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tandem_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tandem_curl_set_share(CURL *easy, CURLSH *share) {
  return (curl_easy_setopt)(easy, CURLOPT_SHARE, share);
}

typedef size_t (*tandem_curl_bytes_callback)(char *bytes, size_t size, size_t count, void *context);

/* For CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION. */
static inline CURLcode tandem_curl_set_callback(CURL *easy, CURLoption option, tandem_curl_bytes_callback callback) {
  return (curl_easy_setopt)(easy, option, callback);
}

typedef CURLcode (*tandem_curl_tls_callback)(CURL *easy, void *tls_context, void *own_context);

/* For CURLOPT_SSL_CTX_FUNCTION, which a libcurl with another TLS library refuses. */
static inline CURLcode tandem_curl_set_tls_callback(CURL *easy, tandem_curl_tls_callback callback) {
  return (curl_easy_setopt)(easy, CURLOPT_SSL_CTX_FUNCTION, callback);
}

/* True when libcurl's TLS library is OpenSSL. */
static inline int tandem_curl_uses_openssl(void) {
  const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
  return version != NULL && version->ssl_version != NULL && strncmp(version->ssl_version, "OpenSSL/", 8) == 0;
}

/* One client's open sockets, up to the array's size; libcurl reports each opening and closing. */
enum { tandem_curl_sockets_max = 16 };
struct tandem_curl_sockets {
  unsigned int user_timeout_milliseconds;
  /* Sockets opened so far, also those that did not fit. */
  unsigned long opened;
  int count;
  curl_socket_t open[tandem_curl_sockets_max];
};

static inline int tandem_curl_opened(void *context, curl_socket_t socket, curlsocktype purpose) {
  struct tandem_curl_sockets *sockets = (struct tandem_curl_sockets *)context;
  if(purpose != CURLSOCKTYPE_IPCXN) return CURL_SOCKOPT_OK;
  sockets->opened++;
#ifdef TCP_USER_TIMEOUT
  /* A failure leaves the system's longer time-out, so the connection is kept. */
  (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &sockets->user_timeout_milliseconds,
                   sizeof(sockets->user_timeout_milliseconds));
#endif
  if(sockets->count < tandem_curl_sockets_max) sockets->open[sockets->count++] = socket;
  return CURL_SOCKOPT_OK;
}

static inline int tandem_curl_closed(void *context, curl_socket_t socket) {
  struct tandem_curl_sockets *sockets = (struct tandem_curl_sockets *)context;
  for(int i = 0; i < sockets->count; i++) {
    if(sockets->open[i] == socket) {
      sockets->open[i] = sockets->open[--sockets->count];
      break;
    }
  }
  return close(socket);
}

/* Corked sockets gather writes into full segments; uncorking sends the rest. libcurl writes each HTTP/2 frame by
 * itself, and a segment per frame costs more than all other work on a small request. */
static inline void tandem_curl_cork(const struct tandem_curl_sockets *sockets, int is_corked) {
#ifdef TCP_CORK
  for(int i = 0; i < sockets->count; i++)
    (void)setsockopt(sockets->open[i], IPPROTO_TCP, TCP_CORK, &is_corked, sizeof(is_corked));
#endif
}

/* Records the handle's connections in `sockets`, which must outlive them, and sets their user time-out. Sent bytes may
 * stay unacknowledged for that long before the kernel ends the connection. */
static inline CURLcode tandem_curl_set_sockets(CURL *easy, struct tandem_curl_sockets *sockets) {
  CURLcode code = (curl_easy_setopt)(easy, CURLOPT_SOCKOPTFUNCTION, tandem_curl_opened);
  if(code == CURLE_OK) code = (curl_easy_setopt)(easy, CURLOPT_SOCKOPTDATA, (void *)sockets);
  if(code == CURLE_OK) code = (curl_easy_setopt)(easy, CURLOPT_CLOSESOCKETFUNCTION, tandem_curl_closed);
  if(code == CURLE_OK) code = (curl_easy_setopt)(easy, CURLOPT_CLOSESOCKETDATA, (void *)sockets);
  return code;
}

typedef int (*tandem_curl_departure)(void *context, char *peer, char *own, int peer_port, int own_port);

/* Calls `departs` whenever libcurl begins to send the handle's request, also when libcurl repeats it. The callback
 * returns CURL_PREREQFUNC_OK, or CURL_PREREQFUNC_ABORT to drop the request. */
static inline CURLcode tandem_curl_set_departure(CURL *easy, tandem_curl_departure departs, void *context) {
  CURLcode code = (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, departs);
  if(code == CURLE_OK) code = (curl_easy_setopt)(easy, CURLOPT_PREREQDATA, context);
  return code;
}

static inline CURLcode tandem_curl_get_long(CURL *easy, CURLINFO info, long *value) {
  return (curl_easy_getinfo)(easy, info, value);
}
static inline CURLcode tandem_curl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
  return (curl_easy_getinfo)(easy, info, value);
}
static inline CURLcode tandem_curl_get_pointer(CURL *easy, CURLINFO info, void **value) {
  return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLMcode tandem_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return (curl_multi_setopt)(multi, option, value);
}

static inline CURLSHcode tandem_curl_share_tls_sessions(CURLSH *share) {
  return (curl_share_setopt)(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

/* A completed transfer, or NULL. The message itself lives only until the handle is removed, hence the copies. */
static inline CURL *tandem_curl_multi_next_done(CURLM *multi, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while((message = curl_multi_info_read(multi, &left)) != NULL) {
    if(message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return message->easy_handle;
    }
  }
  return NULL;
}

#endif
