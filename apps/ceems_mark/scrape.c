/* ceems_mark scrape: counts results by a counter on the page of metrics of another program, such as
 * an inference server (docs/marks.md). */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <strings.h>

#include "ceems_mark.h"
#include "command.h"

enum {
  kMaxPage = 4 << 20, /* bytes of an answer */
  kMaxSeries = 1024,
  kMaxAddresses = 8,
  kAnswerMs = 5000
};

struct address {
  struct sockaddr_storage name;
  socklen_t size;
};

/* One counter of the metric, known by the hash of its labels. */
struct series {
  uint64_t labels;
  double last;
};

struct scraper {
  char host[256];
  char port[8];
  const char* path;
  struct address addresses[kMaxAddresses];
  size_t address_count;
  const char* metric;
  const char* result;
  const char* unit;
  struct series series[kMaxSeries];
  size_t series_count;
  bool begun;    /* what counters had before this is left out */
  bool seen;     /* the page had the metric */
  bool refused;  /* nobody listens at the address */
  double growth; /* not sent yet */
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Splits http://HOST[:PORT][/PATH]. */
static const char* take_url(struct scraper* to, const char* url) {
  const char* at = url + 7;
  const char* end;
  size_t length;
  const char* c;
  if (strncmp(url, "http://", 7) != 0) {
    return "expected a URL that begins with http://";
  }
  for (c = url; *c != '\0'; ++c) {
    if (*c <= ' ' || *c > '~' || *c == '@' || *c == '#') {
      return "invalid character in the URL";
    }
  }
  end = *at == '[' ? strchr(++at, ']') : at + strcspn(at, ":/?");
  length = end != NULL ? (size_t)(end - at) : 0;
  if (length == 0 || length >= sizeof to->host) {
    return "invalid host in the URL";
  }
  memcpy(to->host, at, length);
  to->host[length] = '\0';
  at = end + (*end == ']');
  strcpy(to->port, "80");
  if (*at == ':') {
    length = strspn(++at, "0123456789");
    if (length == 0 || length > 5) {
      return "invalid port in the URL";
    }
    memcpy(to->port, at, length);
    to->port[length] = '\0';
    at += length;
  }
  if (*at != '\0' && *at != '/') {
    return "expected http://HOST[:PORT][/PATH]";
  }
  to->path = *at != '\0' ? at : "/metrics";
  return strlen(to->path) <= 1024 ? NULL : "the URL is too long";
}

static bool is_loopback(const struct sockaddr* name) {
  if (name->sa_family == AF_INET) {
    return ntohl(((const struct sockaddr_in*)name)->sin_addr.s_addr) >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6*)name)->sin6_addr);
}

/* The addresses are looked up once, so that what was checked is what is connected to. */
static const char* look_up(struct scraper* to, bool any_host) {
  struct addrinfo hints;
  struct addrinfo* found = NULL;
  const struct addrinfo* each;
  memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (getaddrinfo(to->host, to->port, &hints, &found) != 0) {
    return "the host of the URL is unknown";
  }
  for (each = found; each != NULL && to->address_count < kMaxAddresses; each = each->ai_next) {
    if ((each->ai_family == AF_INET || each->ai_family == AF_INET6) &&
        (any_host || is_loopback(each->ai_addr))) {
      struct address* address = &to->addresses[to->address_count++];
      memcpy(&address->name, each->ai_addr, each->ai_addrlen);
      address->size = each->ai_addrlen;
    }
  }
  freeaddrinfo(found);
  return to->address_count > 0 ? NULL : "the URL is not on this node; --any-host allows it";
}

/* Waits until the socket is ready. A signal ends the wait. */
static bool wait_for(int fd, short what, int64_t until) {
  struct pollfd waiting = {fd, what, 0};
  const int64_t left = until - now_ms();
  return left > 0 && poll(&waiting, 1, (int)left) > 0;
}

static int connect_to(const struct address* address, int64_t until) {
  int error = 0;
  socklen_t size = sizeof error;
  const int fd = socket(address->name.ss_family, SOCK_STREAM, 0);
  if (fd < 0) {
    return -1;
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (connect(fd, (const struct sockaddr*)&address->name, address->size) == 0) {
    return fd;
  }
  if (errno == EINPROGRESS) {
    error = wait_for(fd, POLLOUT, until) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0
                ? error
                : ETIMEDOUT;
  } else {
    error = errno;
  }
  if (error == 0) {
    return fd;
  }
  close(fd);
  errno = error;
  return -1;
}

/* Sends the request and reads the answer to its end. Returns its size, or -1 with the reason in
 * `why`. */
static ssize_t exchange(
    struct scraper* from, int fd, char* page, size_t most, int64_t until, const char** why) {
  char request[1500];
  size_t sent = 0;
  size_t size = 0;
  const bool v6 = strchr(from->host, ':') != NULL;
  const int length = snprintf(
      request, sizeof request,
      "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nAccept: text/plain\r\nUser-Agent: ceems_mark\r\n"
      "Connection: close\r\n\r\n",
      from->path, v6 ? "[" : "", from->host, v6 ? "]" : "", from->port);
  *why = "the server does not answer";
  while (sent < (size_t)length) {
    const ssize_t part = send(fd, request + sent, (size_t)length - sent, MSG_NOSIGNAL);
    if (part > 0) {
      sent += (size_t)part;
    } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLOUT, until)) {
      return -1;
    }
  }
  while (size < most) {
    const ssize_t part = recv(fd, page + size, most - size, 0);
    if (part == 0) {
      return (ssize_t)size;
    }
    if (part > 0) {
      size += (size_t)part;
    } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLIN, until)) {
      return -1;
    }
  }
  *why = "the answer is longer than 4 MiB";
  return -1;
}

/* The value of a header, or NULL. `headers` ends with an empty line. */
static const char* header(const char* headers, const char* name) {
  const char* line = headers;
  while ((line = strstr(line, "\r\n")) != NULL && strncmp(line, "\r\n\r\n", 4) != 0) {
    line += 2;
    if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
      line += strlen(name) + 1;
      return line + strspn(line, " \t");
    }
  }
  return NULL;
}

/* Joins the chunks of a body in place (RFC 9112, 7.1). Returns NULL if some are missing. */
static char* join_chunks(char* body, const char* end) {
  char* to = body;
  const char* at = body;
  while (at < end) {
    char* after = NULL;
    const unsigned long size = strtoul(at, &after, 16);
    after = after != at ? strstr(after, "\r\n") : NULL;
    if (after == NULL || after + 2 > end || size > (unsigned long)(end - after - 2)) {
      return NULL;
    }
    if (size == 0) {
      *to = '\0';
      return body;
    }
    memmove(to, after + 2, size);
    to += size;
    at = after + 2 + size;
    if (end - at < 2 || at[0] != '\r' || at[1] != '\n') {
      return NULL;
    }
    at += 2;
  }
  return NULL;
}

/* The body of an answer, of which `page[size]` is a 0. */
static char* body_of(char* page, size_t size, const char** why) {
  char* body = strstr(page, "\r\n\r\n");
  const char* text;
  if (body == NULL || strncmp(page, "HTTP/1.", 7) != 0) {
    *why = "the answer is not HTTP";
    return NULL;
  }
  if (strncmp(page + 8, " 200", 4) != 0) {
    *why = "the status of the answer is not 200";
    return NULL;
  }
  body += 4;
  *why = "the answer is incomplete";
  if ((text = header(page, "Transfer-Encoding")) != NULL) {
    return strncasecmp(text, "chunked", 7) == 0 ? join_chunks(body, page + size) : NULL;
  }
  if ((text = header(page, "Content-Length")) != NULL &&
      strtoul(text, NULL, 10) > size - (size_t)(body - page)) {
    return NULL;
  }
  return body;
}

/* Where the value of the sample begins, or NULL if the line has another metric. `labels` gets a
 * hash (FNV-1a) of what is between the braces. */
static const char* value_of(const char* line, const char* metric, uint64_t* labels) {
  const size_t length = strlen(metric);
  const char* at;
  bool quoted = false;
  *labels = 14695981039346656037ULL;
  if (strncmp(line, metric, length) != 0) {
    return NULL;
  }
  at = line + length + strspn(line + length, " \t");
  if (*at == '{') {
    for (++at; *at != '\0' && (quoted || *at != '}'); ++at) {
      quoted = *at == '"' ? !quoted : quoted;
      *labels = (*labels ^ (unsigned char)*at) * 1099511628211ULL;
      if (quoted && *at == '\\' && at[1] != '\0') {
        *labels = (*labels ^ (unsigned char)*++at) * 1099511628211ULL;
      }
    }
    if (*at++ != '}') {
      return NULL;
    }
  } else if (at == line + length) {
    return NULL;
  }
  return at + strspn(at, " \t");
}

/* A counter that has fallen began anew. One that appears later began at 0. */
static void take_sample(struct scraper* to, uint64_t labels, double value) {
  size_t i = 0;
  while (i < to->series_count && to->series[i].labels != labels) {
    ++i;
  }
  if (i == kMaxSeries) {
    return;
  }
  if (i == to->series_count) {
    ++to->series_count;
    to->series[i].labels = labels;
    to->series[i].last = to->begun ? 0 : value;
  }
  to->growth += value >= to->series[i].last ? value - to->series[i].last : value;
  to->series[i].last = value;
}

static void take_page(struct scraper* to, char* text) {
  to->seen = false;
  while (text != NULL) {
    char* line = text;
    uint64_t labels;
    const char* number;
    text = strchr(line, '\n');
    if (text != NULL) {
      *text++ = '\0';
    }
    number = value_of(line, to->metric, &labels);
    if (number != NULL) {
      char* end = NULL;
      const double value = strtod(number, &end);
      to->seen = true;
      if (end != number && strchr(" \t\r", *end) != NULL && value >= 0 && value <= 1e15) {
        take_sample(to, labels, value);
      }
    }
  }
  to->begun = true;
}

/* Reads the page once. Returns why it could not, or NULL. */
static const char* read_page(struct scraper* from, int64_t until) {
  static char page[kMaxPage + 1];
  const char* why = "";
  ssize_t size = -1;
  char* body;
  int fd = -1;
  size_t i;
  from->refused = true;
  for (i = 0; i < from->address_count && fd < 0; ++i) {
    fd = connect_to(&from->addresses[i], until);
    from->refused = from->refused && fd < 0 && (errno == ECONNREFUSED || errno == EADDRNOTAVAIL);
  }
  if (fd < 0) {
    return strerror(errno);
  }
  size = exchange(from, fd, page, sizeof page - 1, until, &why);
  close(fd);
  if (size < 0) {
    return why;
  }
  page[size] = '\0';
  body = body_of(page, (size_t)size, &why);
  if (body == NULL) {
    return why;
  }
  take_page(from, body);
  return from->seen ? NULL : "the page does not have this metric";
}

/* Reads the page until this program or its parent ends, and then once more. */
static int scrape_until_end(struct scraper* from, int64_t interval) {
  const pid_t parent = getppid();
  const char* said = NULL;
  const char* why = NULL;
  bool first = true;
  bool last;
  do {
    int64_t next;
    last = ended || getppid() != parent;
    why = read_page(from, now_ms() + (last ? kPatienceMs : kAnswerMs));
    if (first && from->refused) {
      from->begun = true; /* what comes later began after us, at 0 */
    }
    first = false;
    if (ended && !last) {
      continue; /* the signal may have cut this read short; the last one decides */
    }
    if (why != NULL && (said == NULL || strcmp(why, said) != 0) && !last) {
      failed("scrape", why);
    }
    said = why;
    if (from->growth > 0 && ceems_mark_result(from->result, from->growth, from->unit) == 0) {
      from->growth = 0;
    }
    next = now_ms() + interval;
    while (!last && !ended && getppid() == parent && now_ms() < next) {
      const int64_t left = next - now_ms();
      poll(NULL, 0, left < kPollMs ? (int)left : kPollMs);
    }
  } while (!last);
  if (why == NULL || from->series_count > 0) { /* it may have ended before us */
    why = finish();
  }
  return why != NULL ? failed("scrape", why) : 0;
}

/* What is between the last ":" and "_total". */
static const char* default_result(const char* metric) {
  static char name[33];
  const char* start = strrchr(metric, ':');
  size_t length;
  start = start != NULL ? start + 1 : metric;
  length = strlen(start);
  if (length > 6 && strcmp(start + length - 6, "_total") == 0) {
    length -= 6;
  }
  if (length >= sizeof name) {
    return "";
  }
  memcpy(name, start, length);
  return name;
}

static bool is_metric(const char* text) {
  const size_t length = strlen(text);
  return length > 0 && length <= 256 && !(*text >= '0' && *text <= '9') &&
         strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") == length;
}

int scrape(int count, char** words) {
  static struct scraper scraper;
  const char* interval = "5";
  bool any_host = false;
  const struct option options[] = {
      {"--metric", &scraper.metric, NULL}, {"--result", &scraper.result, NULL},
      {"--unit", &scraper.unit, NULL},     {"--interval", &interval, NULL},
      {"--any-host", NULL, &any_host},     {NULL, NULL, NULL}};
  const char* wrong;
  double milliseconds;
  char* end = NULL;
  if (count < 1 || !take_options(count - 1, words + 1, options) || scraper.metric == NULL) {
    return usage(
        "expected scrape URL --metric METRIC [--result NAME] [--unit UNIT] [--interval SECONDS] "
        "[--any-host]");
  }
  if (!is_metric(scraper.metric)) {
    return usage("invalid name of a metric");
  }
  scraper.result = scraper.result != NULL ? scraper.result : default_result(scraper.metric);
  if (!is_name(scraper.result)) {
    return usage("invalid name of the result; give one with --result");
  }
  if (scraper.unit != NULL && !is_unit(scraper.unit)) {
    return usage("invalid unit");
  }
  milliseconds = 1000 * strtod(interval, &end);
  if (end == interval || *end != '\0' || !(milliseconds >= 100 && milliseconds <= 3600000)) {
    return usage("expected an interval of 0.1 to 3600 seconds");
  }
  wrong = take_url(&scraper, words[0]);
  if (wrong == NULL) {
    wrong = look_up(&scraper, any_host);
  }
  if (wrong != NULL) {
    return usage(wrong);
  }
  end_on_signals();
  return scrape_until_end(&scraper, (int64_t)milliseconds);
}
