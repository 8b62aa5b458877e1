// A load generator: keep-alive HTTP/1.1 POSTs to one loopback port; one thread, epoll.
//
//   load -p PORT -f BODY_FILE [-c CONNECTIONS] [-r RATE] [-o RAMP_MS] [-H 'Name: value']…
//        [-W REPLIES] [-w EVENTS] [-N REPLIES] [-n EVENTS] [-t SECONDS] [-s] [-O] [-y]
//
//   -r          requests a second at fixed instants, latency counted from the instant; without it a closed loop on
//               every connection
//   -o          spreads the first requests over this time
//   -W, -w      warm-up ends after this many replies and this many events
//   -N, -n, -t  measuring ends after this many replies, or events, or seconds, whichever comes first
//   -s          the replies are event streams
//   -y          never sleeps, so that it costs the subject nothing to wake it up
// It prints "measuring" when the warm-up has ended, then one line of JSON: counts, and times in µs.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 512
#define HEAD_BYTES 8192
#define MAX_FAILURES_IN_A_ROW 20

typedef unsigned long long u64;

enum state { IDLE, HEAD, BODY_BY_LENGTH, BODY_BY_CHUNKS };
enum chunk_state { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, LAST_CHUNK_END };

typedef struct {
  int fd, sent, head_length, failures;
  enum state state;
  enum chunk_state chunk_state;
  long left; // bytes left of the body or of the chunk
  char *head;
  u64 began_ns;
  int saw_body;
  unsigned last_bytes; // of the stream: the latest four
  int in_stamp;
  u64 stamp_ns;
} connection;

typedef struct {
  float *us;
  long length, capacity;
} sample;

static int port, connection_count = 32, streams, until_all_open, stays_awake;
static double rate, max_seconds = 60;
static long ramp_ms, warm_replies, warm_events, max_replies, max_events;
static char *request;
static int request_length, epoll_fd, measuring;
static connection *connections;
static int *idle, idle_count;
static sample latency, first_byte, event_delay;
static long replies, events, errors, not_200, bytes, all_replies, all_events, opened;
static char first_error[400];

static u64 now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// User and system time of this process.
static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void add(sample *s, u64 ns) {
  if (!measuring) return;
  if (s->length == s->capacity)
    s->us = realloc(s->us, (s->capacity = s->capacity ? s->capacity * 2 : 65536) * sizeof(float));
  s->us[s->length++] = ns / 1000.0f;
}

static int compare(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static double quantile(sample *s, double p) {
  return s->length ? s->us[(long)(p * (s->length - 1))] : -1;
}

static void note(const char *what, const char *text, int length) {
  if (!first_error[0]) snprintf(first_error, sizeof first_error, "%s: %.*s", what, length > 250 ? 250 : length, text);
}

static void open_connection(int i) {
  connection *c = &connections[i];
  int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connect(c->fd, (void *)&address, sizeof address);
  c->state = IDLE;
  c->head_length = 0;
  opened++;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &(struct epoll_event){EPOLLIN | EPOLLRDHUP, {.u32 = i}});
}

static void send_rest(int i, int waits_for_writable) {
  connection *c = &connections[i];
  while (c->state == HEAD && c->sent < request_length) {
    int sent = send(c->fd, request + c->sent, request_length - c->sent, MSG_NOSIGNAL);
    if (sent < 0) break; // full, or still connecting; a lost connection shows itself on reading
    c->sent += sent;
  }
  int unsent = c->state == HEAD && c->sent < request_length;
  if (unsent == waits_for_writable) return;
  struct epoll_event event = {EPOLLIN | EPOLLRDHUP | (unsent ? EPOLLOUT : 0), {.u32 = i}};
  epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void start_request(int i, u64 at_ns) {
  connection *c = &connections[i];
  c->began_ns = at_ns;
  c->sent = c->head_length = c->saw_body = c->in_stamp = 0;
  c->last_bytes = 0;
  c->state = HEAD;
  send_rest(i, 0);
}

static void be_free(int i) {
  if (rate > 0)
    idle[idle_count++] = i;
  else
    start_request(i, now_ns());
}

static void finish(int i) {
  connection *c = &connections[i];
  all_replies++;
  if (measuring) replies++;
  add(&latency, now_ns() - c->began_ns);
  c->state = IDLE;
  c->failures = 0;
  be_free(i);
}

static void fail(int i, const char *what) {
  connection *c = &connections[i];
  enum state was = c->state;
  note(what, c->head, c->head_length);
  if (measuring) errors++;
  close(c->fd);
  open_connection(i);
  if (++c->failures > MAX_FAILURES_IN_A_ROW) {
    fprintf(stderr, "load: gave up after failures: %s\n", first_error);
    exit(3);
  }
  if (was != IDLE) be_free(i);
}

// Counts events (blank lines) and reads their stamps.
static void read_events(connection *c, const char *data, int length) {
  u64 arrived = now_ns();
  for (int k = 0; k < length; k++) {
    unsigned char byte = data[k];
    if (byte == '\n' && (c->last_bytes & 255) == '\n') {
      all_events++;
      if (measuring) events++;
    }
    c->last_bytes = c->last_bytes << 8 | byte;
    if (c->in_stamp && byte >= '0' && byte <= '9') {
      c->stamp_ns = c->stamp_ns * 10 + (byte - '0');
    } else if (c->in_stamp) {
      c->in_stamp = 0;
      if (arrived > c->stamp_ns) add(&event_delay, arrived - c->stamp_ns);
    } else if ((c->last_bytes & 0xffffff) == 0x74735f) { // "ts_"
      c->in_stamp = 1;
      c->stamp_ns = 0;
    }
  }
}

static void read_payload(connection *c, const char *data, int length) {
  if (length <= 0) return;
  if (measuring) bytes += length;
  if (!c->saw_body) add(&first_byte, now_ns() - c->began_ns);
  c->saw_body = 1;
  if (streams) read_events(c, data, length);
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

// Whether the body has ended.
static int read_body(connection *c, const char *data, int length) {
  if (c->state == BODY_BY_LENGTH) {
    read_payload(c, data, length);
    return (c->left -= length) <= 0;
  }
  for (int p = 0; p < length;) {
    if (c->chunk_state == CHUNK_DATA) {
      int part = length - p < c->left ? length - p : c->left;
      read_payload(c, data + p, part);
      p += part;
      if (!(c->left -= part)) c->chunk_state = CHUNK_END;
      continue;
    }
    char byte = data[p++];
    if (c->chunk_state == CHUNK_SIZE) {
      int digit = hex_digit(byte);
      if (digit >= 0)
        c->left = c->left * 16 + digit;
      else if (byte == '\n')
        c->chunk_state = c->left ? CHUNK_DATA : LAST_CHUNK_END;
    } else if (byte == '\n') {
      if (c->chunk_state == LAST_CHUNK_END) return 1;
      c->chunk_state = CHUNK_SIZE;
      c->left = 0;
    }
  }
  return 0;
}

// Takes the head from data; the number of bytes taken, or -1 while the head is not whole.
static int read_head(connection *c, const char *data, int length) {
  int before = c->head_length;
  if (before + length > HEAD_BYTES - 2) length = HEAD_BYTES - 2 - before;
  memcpy(c->head + before, data, length);
  c->head_length += length;
  c->head[c->head_length] = 0;
  char *end = strstr(c->head, "\r\n\r\n");
  if (!end) return -1;
  if (strncmp(c->head + 9, "200", 3)) {
    if (measuring) not_200++;
    note("not 200", c->head, c->head_length);
  }
  *end = 0;
  char *content_length = strcasestr(c->head, "\ncontent-length:");
  int chunked = strcasestr(c->head, "\ntransfer-encoding:") != 0;
  *end = '\r';
  c->state = chunked ? BODY_BY_CHUNKS : BODY_BY_LENGTH;
  c->chunk_state = CHUNK_SIZE;
  c->left = !chunked && content_length ? atol(content_length + 16) : 0;
  return end + 4 - c->head - before;
}

static void read_reply(int i) {
  connection *c = &connections[i];
  char buffer[65536], *data;
  for (;;) {
    int got = recv(c->fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      fail(i, c->state == IDLE ? "closed while idle" : "closed early");
      return;
    }
    int whole = got == sizeof buffer;
    data = buffer;
    if (c->state == IDLE) return;
    if (c->state == HEAD) {
      int taken = read_head(c, data, got);
      if (taken < 0) continue;
      data += taken;
      got -= taken;
    }
    if ((got > 0 || (c->state == BODY_BY_LENGTH && c->left == 0)) && read_body(c, data, got)) {
      finish(i);
      return;
    }
    if (!whole) return;
  }
}

static void read_arguments(int count, char **arguments) {
  static char extra[4096];
  const char *file = 0;
  int option;
  while ((option = getopt(count, arguments, "p:f:c:r:o:H:W:w:N:n:t:sOy")) != -1) {
    switch (option) {
    case 'p':
      port = atoi(optarg);
      break;
    case 'f':
      file = optarg;
      break;
    case 'c':
      connection_count = atoi(optarg);
      break;
    case 'r':
      rate = atof(optarg);
      break;
    case 'o':
      ramp_ms = atol(optarg);
      break;
    case 'H':
      strcat(strcat(extra, optarg), "\r\n");
      break;
    case 'W':
      warm_replies = atol(optarg);
      break;
    case 'w':
      warm_events = atol(optarg);
      break;
    case 'N':
      max_replies = atol(optarg);
      break;
    case 'n':
      max_events = atol(optarg);
      break;
    case 't':
      max_seconds = atof(optarg);
      break;
    case 's':
      streams = 1;
      break;
    case 'O':
      until_all_open = 1;
      break;
    case 'y':
      stays_awake = 1;
      break;
    default:
      exit(2);
    }
  }
  FILE *input = file ? fopen(file, "rb") : 0;
  if (!port || !input) {
    fprintf(stderr, "load: -p PORT and -f BODY_FILE (readable) are needed\n");
    exit(2);
  }
  fseek(input, 0, SEEK_END);
  long length = ftell(input);
  rewind(input);
  request = malloc(length + 8192);
  request_length = sprintf(request,
                           "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.local\r\n"
                           "User-Agent: OpenAI/Python 1.99.0\r\nAccept: application/json\r\n"
                           "Authorization: Bearer sk-test-0123456789abcdef0123456789\r\n"
                           "Content-Type: application/json\r\n%sContent-Length: %ld\r\n\r\n",
                           extra, length);
  if (fread(request + request_length, 1, length, input) != (size_t)length) exit(2);
  request_length += length;
  fclose(input);
}

static long count_open(void) {
  long open = 0;
  for (int i = 0; i < connection_count; i++)
    if (connections[i].state == BODY_BY_LENGTH || connections[i].state == BODY_BY_CHUNKS) open++;
  return open;
}

static void print_result(double seconds, double cpu) {
  qsort(latency.us, latency.length, sizeof(float), compare);
  qsort(first_byte.us, first_byte.length, sizeof(float), compare);
  qsort(event_delay.us, event_delay.length, sizeof(float), compare);
  printf("{\"seconds\":%.3f,\"cpuUs\":%.0f,\"replies\":%ld,\"events\":%ld,\"bytes\":%ld,\"errors\":%ld,\"not200\":%ld,\"connections\":"
         "%ld,"
         "\"open\":%ld,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"firstByteP50\":%.1f,\"firstByteP99\":%.1f,"
         "\"eventDelayP50\":%.1f,\"eventDelayP99\":%.1f}\n",
         seconds, cpu, replies, events, bytes, errors, not_200, opened, count_open(), quantile(&latency, .5), quantile(&latency, .9),
         quantile(&latency, .99), quantile(&first_byte, .5), quantile(&first_byte, .99), quantile(&event_delay, .5),
         quantile(&event_delay, .99));
  if (first_error[0]) fprintf(stderr, "%s\n", first_error);
}

int main(int count, char **arguments) {
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  read_arguments(count, arguments);
  epoll_fd = epoll_create1(0);
  connections = calloc(connection_count, sizeof(connection));
  idle = calloc(connection_count * 4, sizeof(int));
  int started = 0;
  double cpu_before = 0;
  u64 began = now_ns(), measuring_from = 0, gap = rate > 0 ? 1e9 / rate : 0, next = began;
  struct epoll_event ready[EVENTS];
  for (;;) {
    u64 now = now_ns();
    if (!measuring && (now - began) / 1e9 > max_seconds + 60) {
      fprintf(stderr, "load: the warm-up did not end: %ld replies, %ld events; %s\n", all_replies, all_events,
              first_error);
      return 3;
    }
    if (!measuring && all_replies >= warm_replies && all_events >= warm_events &&
        (!until_all_open || count_open() == connection_count)) {
      measuring = 1;
      measuring_from = now;
      cpu_before = cpu_us();
      printf("measuring\n");
      fflush(stdout);
    }
    if (measuring && ((max_replies && replies >= max_replies) || (max_events && events >= max_events) ||
                      (now - measuring_from) / 1e9 >= max_seconds))
      break;
    int wanted = ramp_ms ? (now - began) / 1e6 * connection_count / ramp_ms + 1 : connection_count;
    for (; started < connection_count && started < wanted; started++) {
      connections[started].head = malloc(HEAD_BYTES);
      open_connection(started);
      be_free(started);
    }
    for (; rate > 0 && next <= now && idle_count; next += gap) start_request(idle[--idle_count], next);
    struct timespec wait = {0, stays_awake ? 0 : 1000000};
    if (rate > 0 && idle_count && !stays_awake) {
      u64 until = now_ns();
      wait.tv_nsec = next <= until ? 0 : next - until < 1000000 ? next - until : 1000000;
    }
    int n = epoll_pwait2(epoll_fd, ready, EVENTS, &wait, 0);
    if (stays_awake && n == 0) sched_yield();
    for (int k = 0; k < n; k++) {
      int i = ready[k].data.u32;
      if (ready[k].events & EPOLLOUT) send_rest(i, 1);
      if (ready[k].events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) read_reply(i);
    }
  }
  print_result((now_ns() - measuring_from) / 1e9, cpu_us() - cpu_before);
  return 0;
}
