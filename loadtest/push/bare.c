/* The least a push can cost with libcurl: posts what the sink recorded, over one HTTP/2 connection.
 *
 *   bare URL CA-FILE RECORD IN-FLIGHT COUNT
 *
 * Keeps IN-FLIGHT requests in the air, after one that goes alone, as a gateway's client has to. Header lists are made before the
 * clock starts, easy handles are used again, and nothing is done with an answer but looking at its status. Prints: accepted,
 * seconds, seconds of user CPU, seconds of system CPU, connections. */
#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct request {
  char *url;
  struct curl_slist *headers;
  char *body;
  uint32_t body_length;
};

static struct request *requests;
static size_t request_count;

static char *take(FILE *file, uint32_t *length) {
  if(fread(length, sizeof *length, 1, file) != 1) return NULL;
  char *text = malloc(*length + 1);
  if(fread(text, 1, *length, file) != *length) return NULL;
  text[*length] = 0;
  return text;
}

static void load(const char *base, const char *path) {
  FILE *file = fopen(path, "rb");
  if(!file) {
    perror(path);
    exit(1);
  }
  uint32_t length;
  char *target;
  size_t room = 0;
  while((target = take(file, &length)) != NULL) {
    if(request_count == room) {
      room = room ? room * 2 : 1024;
      requests = realloc(requests, room * sizeof *requests);
    }
    struct request *request = &requests[request_count];
    memset(request, 0, sizeof *request);
    request->url = malloc(strlen(base) + strlen(target) + 1);
    sprintf(request->url, "%s%s", base, target);
    free(target);
    uint32_t count = 0;
    if(fread(&count, sizeof count, 1, file) != 1) exit(1);
    request->headers = curl_slist_append(NULL, "Accept:");
    request->headers = curl_slist_append(request->headers, "Expect:");
    while(count-- > 0) {
      char *name = take(file, &length), *value = take(file, &length);
      if(!name || !value) exit(1);
      /* libcurl writes this one itself. */
      if(strcmp(name, "content-length") != 0) {
        char *line = malloc(strlen(name) + strlen(value) + 3);
        sprintf(line, "%s: %s", name, value);
        request->headers = curl_slist_append(request->headers, line);
        free(line);
      }
      free(name);
      free(value);
    }
    request->body = take(file, &request->body_length);
    if(!request->body) exit(1);
    request_count++;
  }
  fclose(file);
}

static size_t drop(char *bytes, size_t size, size_t count, void *context) {
  (void)bytes, (void)context;
  return size * count;
}

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

int main(int argc, char **argv) {
  if(argc != 6) {
    fprintf(stderr, "usage: bare URL CA-FILE RECORD IN-FLIGHT COUNT\n");
    return 2;
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);
  load(argv[1], argv[3]);
  long window = atol(argv[4]);
  size_t total = (size_t)atol(argv[5]), started = 0, accepted = 0, ended = 0, connections = 0;
  if(request_count == 0 || window < 1) return 1;

  CURLM *multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
  curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, window > 100 ? window : 100L);
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
  CURL **idle = calloc((size_t)window, sizeof *idle);
  size_t idle_count = 0;
  for(long i = 0; i < window; i++) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CAINFO, argv[2]);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 15000L);
    idle[idle_count++] = easy;
  }

  struct rusage before, after;
  struct timespec start, finish;
  getrusage(RUSAGE_SELF, &before);
  clock_gettime(CLOCK_MONOTONIC, &start);
  while(ended < total) {
    /* The first one alone, until it is answered. */
    while(idle_count > 0 && started < total && (ended > 0 || started == 0)) {
      CURL *easy = idle[--idle_count];
      struct request *request = &requests[started++ % request_count];
      curl_easy_setopt(easy, CURLOPT_URL, request->url);
      curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)request->body_length);
      curl_multi_add_handle(multi, easy);
    }
    int running = 0, left = 0, finished = 0;
    curl_multi_perform(multi, &running);
    CURLMsg *message;
    while((message = curl_multi_info_read(multi, &left)) != NULL) {
      if(message->msg != CURLMSG_DONE) continue;
      CURL *easy = message->easy_handle;
      long status = 0, opened = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &opened);
      connections += (size_t)opened;
      if(message->data.result == CURLE_OK && status == 200) accepted++;
      else fprintf(stderr, "bare: %s, status %ld\n", curl_easy_strerror(message->data.result), status);
      curl_multi_remove_handle(multi, easy);
      idle[idle_count++] = easy;
      ended++;
      finished = 1;
    }
    if(!finished && ended < total) curl_multi_poll(multi, NULL, 0, 50, NULL);
  }
  clock_gettime(CLOCK_MONOTONIC, &finish);
  getrusage(RUSAGE_SELF, &after);
  printf("%zu %.6f %.6f %.6f %zu\n", accepted,
         (double)(finish.tv_sec - start.tv_sec) + (double)(finish.tv_nsec - start.tv_nsec) / 1e9,
         seconds(after.ru_utime) - seconds(before.ru_utime), seconds(after.ru_stime) - seconds(before.ru_stime), connections);
  return 0;
}
