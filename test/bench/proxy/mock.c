// An OpenAI-shaped endpoint on several loopback ports: one thread, epoll, no allocation per reply.
//
//   mock PORTS        listens on PORTS free ports and prints "ready PORT PORT …"; ends with its parent
//   mock PORTS awake  the same, and never sleeps: it costs the one who writes to it nothing to wake it up
//
// The body of a POST sets the reply by three of its fields, which must stand in its first or last 600 bytes:
//   "stream":true     server-sent events, else one JSON object
//   "max_tokens":N    number of events
//   "seed":U          µs between events (0: all at once, a write each), or think time before the JSON
// Each event carries "ts_<CLOCK_MONOTONIC in ns>" for the load generator. With "include_usage":true a usage event goes
// before [DONE]. GET /metrics answers as vLLM does; any other GET answers 200 with an empty list of models.
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
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 65536
#define MAX_PORTS 64
#define EVENTS 512
#define TICK_NS 250000ull
#define WHEEL_TICKS 8192
#define KNOB_BYTES 600

typedef unsigned long long u64;

typedef struct connection {
  int fd, length, capacity;
  char *input;
  int stream, with_usage, events_left, events_sent;
  u64 due_ns, step_ns;
  int scheduled, closing;
  struct connection *next; // in its slot of the wheel
} connection;

static connection *connections[MAX_FD];
static connection *wheel[WHEEL_TICKS];
static u64 wheel_tick;
static long scheduled_count;
static int epoll_fd;
static char json_reply[4096];
static int json_reply_length;

static const char stream_head[] = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
                                  "content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
                                  "x-request-id: 7f0c6c1e-7c1f-4c0c-9f0f-0123456789ab\r\n"
                                  "transfer-encoding: chunked\r\n\r\n";

static u64 now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// A connection that waits in the wheel is only marked: the wheel frees it when its turn comes.
static void drop(connection *c) {
  if (c->scheduled) {
    c->closing = 1;
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, 0);
    return;
  }
  connections[c->fd] = 0;
  close(c->fd);
  free(c->input);
  free(c);
}

static int write_all(connection *c, const char *bytes, int length) {
  while (length > 0) {
    int sent = send(c->fd, bytes, length, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return -1;
    if (sent < 0) {
      nanosleep(&(struct timespec){0, 50000}, 0);
      continue;
    }
    bytes += sent;
    length -= sent;
  }
  return 0;
}

static void schedule(connection *c) {
  u64 tick = c->due_ns / TICK_NS;
  if (tick <= wheel_tick) tick = wheel_tick + 1;
  if (tick >= wheel_tick + WHEEL_TICKS) tick = wheel_tick + WHEEL_TICKS - 1;
  c->next = wheel[tick % WHEEL_TICKS];
  wheel[tick % WHEEL_TICKS] = c;
  c->scheduled = 1;
  scheduled_count++;
}

static int write_chunk(char *out, const char *event, int length) {
  int n = sprintf(out, "%x\r\n", length);
  memcpy(out + n, event, length);
  memcpy(out + n + length, "\r\n", 2);
  return n + length + 2;
}

#define EVENT_START                                                                                                    \
  "data: {\"id\":\"chatcmpl-8f2a1b3c4d5e6f70\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,"           \
  "\"model\":\"llama-3.1-8b\","

static int send_next(connection *c) {
  if (!c->stream) return write_all(c, json_reply, json_reply_length);
  char event[512], out[2048];
  int length = sprintf(event,
                       EVENT_START "\"system_fingerprint\":\"ts_%llu\",\"choices\":[{\"index\":0,\"delta\":"
                                   "{\"content\":\" tok%d\"},\"finish_reason\":null}]}\n\n",
                       now_ns(), c->events_sent++);
  int n = write_chunk(out, event, length);
  if (--c->events_left == 0) {
    if (c->with_usage) {
      length = sprintf(event,
                       EVENT_START "\"choices\":[],\"usage\":{\"prompt_tokens\":812,\"completion_tokens\":%d,"
                                   "\"total_tokens\":%d}}\n\n",
                       c->events_sent, 812 + c->events_sent);
      n += write_chunk(out + n, event, length);
    }
    n += write_chunk(out + n, "data: [DONE]\n\n", 14);
    memcpy(out + n, "0\r\n\r\n", 5);
    n += 5;
  }
  return write_all(c, out, n);
}

static const char *find_knob(const char *body, int length, const char *key) {
  int edge = length < KNOB_BYTES ? length : KNOB_BYTES;
  const char *found = memmem(body, edge, key, strlen(key));
  if (!found) found = memmem(body + length - edge, edge, key, strlen(key));
  return found ? found + strlen(key) : 0;
}

static long number_knob(const char *body, int length, const char *key) {
  const char *value = find_knob(body, length, key);
  return value ? atol(value) : 0;
}

static int answer_post(connection *c, const char *body, int length) {
  long max_tokens = number_knob(body, length, "\"max_tokens\":");
  c->step_ns = number_knob(body, length, "\"seed\":") * 1000ull;
  c->stream = find_knob(body, length, "\"stream\":true") != 0;
  c->with_usage = find_knob(body, length, "\"include_usage\":true") != 0;
  c->events_left = c->stream ? (max_tokens > 0 ? max_tokens : 100) : 1;
  c->events_sent = 0;
  if (c->stream && write_all(c, stream_head, sizeof stream_head - 1)) return -1;
  if (c->step_ns) {
    c->due_ns = now_ns() + c->step_ns;
    schedule(c);
    return 0;
  }
  if (!c->stream) return send_next(c);
  while (c->events_left > 0)
    if (send_next(c)) return -1;
  return 0;
}

static int answer_get(connection *c) {
  char body[1024], out[1280];
  int metrics = !strncmp(c->input, "GET /metrics", 12), length;
  if (metrics)
    length =
        sprintf(body,
                "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"llama-3.1-8b\"} %ld\n"
                "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name=\"llama-3.1-8b\"} 0\n"
                "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{model_name=\"llama-3.1-8b\"} 0.1\n",
                scheduled_count);
  else
    length = sprintf(body, "{\"object\":\"list\",\"data\":[]}");
  int n = sprintf(out, "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s",
                  metrics ? "text/plain; version=0.0.4; charset=utf-8" : "application/json", length, body);
  return write_all(c, out, n);
}

// Answers every whole request in the input; -1 when the connection is lost.
static int answer_input(connection *c) {
  while (c->length >= 16) {
    char *end = memmem(c->input, c->length, "\r\n\r\n", 4);
    if (!end) return 0;
    int head = end - c->input + 4, body = 0;
    *end = 0;
    char *content_length = strcasestr(c->input, "\ncontent-length:");
    char *chunked = content_length ? 0 : strcasestr(c->input, "\ntransfer-encoding: chunked");
    *end = '\r';
    if (content_length) body = atoi(content_length + 16);
    if (chunked) {
      char *last = memmem(c->input + head, c->length - head, "\r\n0\r\n\r\n", 7);
      if (!last) return 0;
      body = last - (c->input + head) + 7;
    }
    if (c->length < head + body) return 0;
    if (c->input[0] == 'G' ? answer_get(c) : answer_post(c, c->input + head, body)) return -1;
    memmove(c->input, c->input + head + body, c->length - head - body);
    c->length -= head + body;
  }
  return 0;
}

static void accept_all(int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
    if (fd >= MAX_FD) {
      close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->capacity = 8192;
    c->input = malloc(c->capacity);
    connections[fd] = c;
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN, {.fd = fd}});
  }
}

static void read_input(connection *c) {
  for (;;) {
    if (c->length + 4096 > c->capacity) c->input = realloc(c->input, c->capacity *= 2);
    int room = c->capacity - c->length - 1;
    int got = recv(c->fd, c->input + c->length, room, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      drop(c);
      return;
    }
    if (got < 0) break;
    c->length += got;
    c->input[c->length] = 0;
    if (got < room) break;
  }
  if (answer_input(c)) drop(c);
}

static void turn_wheel(void) {
  u64 target = now_ns() / TICK_NS;
  if (!scheduled_count) wheel_tick = target;
  while (wheel_tick < target) {
    wheel_tick++;
    connection *c = wheel[wheel_tick % WHEEL_TICKS], *next;
    wheel[wheel_tick % WHEEL_TICKS] = 0;
    for (; c; c = next) {
      next = c->next;
      c->scheduled = 0;
      scheduled_count--;
      if (c->closing) {
        drop(c);
      } else if (c->due_ns / TICK_NS > wheel_tick) {
        schedule(c); // due beyond one turn of the wheel
      } else if (send_next(c)) {
        drop(c);
      } else if (c->stream && c->events_left > 0) {
        c->due_ns += c->step_ns;
        schedule(c);
      }
    }
  }
}

static int listen_on_free_port(int *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  if (bind(fd, (void *)&address, size) || listen(fd, 4096) || getsockname(fd, (void *)&address, &size)) return -1;
  *port = ntohs(address.sin_port);
  return fd;
}

int main(int count, char **arguments) {
  int ports = count > 1 ? atoi(arguments[1]) : 0, is_listener[MAX_FD] = {0};
  int stays_awake = count > 2 && !strcmp(arguments[2], "awake");
  if (ports < 1 || ports > MAX_PORTS) {
    fprintf(stderr, "usage: mock PORTS (1 to %d) [awake]\n", MAX_PORTS);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  char body[2048], text[400] = "";
  for (int i = 0; i < 6; i++) strcat(text, "The quick brown fox jumps over the lazy dog. ");
  int length = sprintf(body,
                       "{\"id\":\"chatcmpl-8f2a1b3c4d5e6f70\",\"object\":\"chat.completion\",\"created\":1767225600,"
                       "\"model\":\"llama-3.1-8b\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                       "\"content\":\"%s\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":"
                       "{\"prompt_tokens\":812,\"completion_tokens\":64,\"total_tokens\":876},"
                       "\"system_fingerprint\":\"fp_0123456789\"}",
                       text);
  json_reply_length = sprintf(json_reply,
                              "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
                              "content-type: application/json\r\nx-request-id: 7f0c6c1e-7c1f-4c0c-9f0f-0123456789ab\r\n"
                              "content-length: %d\r\n\r\n%s",
                              length, body);
  epoll_fd = epoll_create1(0);
  printf("ready");
  for (int i = 0; i < ports; i++) {
    int port, fd = listen_on_free_port(&port);
    if (fd < 0) {
      perror("mock: listen");
      return 1;
    }
    is_listener[fd] = 1;
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN, {.fd = fd}});
    printf(" %d", port);
  }
  printf("\n");
  fflush(stdout);
  wheel_tick = now_ns() / TICK_NS;
  struct epoll_event events[EVENTS];
  for (;;) {
    struct timespec wait = {0, stays_awake ? 0 : scheduled_count ? TICK_NS : 100000000};
    int ready = epoll_pwait2(epoll_fd, events, EVENTS, &wait, 0);
    if (stays_awake && ready == 0) sched_yield();
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (is_listener[fd])
        accept_all(fd);
      else if (connections[fd] && !connections[fd]->closing)
        read_input(connections[fd]);
    }
    turn_wheel();
  }
}
