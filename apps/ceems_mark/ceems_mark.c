/* ceems_mark: marks from scripts and log files (docs/marks.md). */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ceems_mark.h"
#include "command.h"

static const char kHelp[] =
    "Tells the exporter of CEEMS on this node what a job is doing, for its energy by region and by\n"
    "result.\n\n"
    "  ceems_mark begin NAME              a region of the job begins\n"
    "  ceems_mark end NAME                it ends\n"
    "  ceems_mark result NAME N [UNIT]    N more results\n"
    "  ceems_mark progress N NAME         N results since the program began\n"
    "  ceems_mark fom NAME VALUE [UNIT]   a figure of merit\n"
    "  ceems_mark wrap NAME -- COMMAND    runs a command as a region\n"
    "  ceems_mark follow FILE --regex=REGEX (--result=NAME | --fom=NAME) [--unit=UNIT]\n"
    "      finds lines of a growing file, \"-\" for the standard input, which is passed on\n"
    "  ceems_mark scrape URL --metric=METRIC [--result=NAME] [--unit=UNIT]\n"
    "      counts results by a counter on the page of metrics of another program\n\n"
    "Flags:\n"
    "  -v, --verbose       say why a mark was not taken, and exit with status 1; without it, it is\n"
    "                      not an error\n"
    "  --regex=REGEX       POSIX extended, with \\d for a digit. The first group is the running number\n"
    "                      of results, or the figure of merit. Without a group, each line is a result\n"
    "  --metric=METRIC     counter, such as vllm:generation_tokens_total. All its series add up\n"
    "  --result=NAME       name of the results; of scrape, the default is the name of the metric\n"
    "                      without its prefix and \"_total\"\n"
    "  --fom=NAME          name of the figure of merit\n"
    "  --unit=UNIT         unit of measurement, such as ns/day\n"
    "  --interval=SECONDS  how often scrape reads the page, from 0.1 to 3600 (default: 5)\n"
    "  --any-host          let scrape read pages of other nodes as well\n"
    "  -h, --help          show this text\n"
    "  --version           show the version\n\n"
    "Names start with a letter and have letters, digits and \"_.-\", at most 32. The socket is\n"
    "$CEEMS_MARK_SOCKET or /run/ceems/mark.sock.\n";

static const char kVersion[] =
    "ceems_mark, version " CEEMS_MARK_VERSION "\n  platform:  linux/"
#if defined(__x86_64__)
    "amd64\n";
#elif defined(__aarch64__)
    "arm64\n";
#else
    "other\n";
#endif

#define COMMANDS "begin end result progress fom wrap follow scrape"
#define FLAGS "--verbose --regex --metric --result --fom --unit --interval --any-host --help --version"

/* What packages ask every program for. */
static const struct {
  const char *option;
  const char *text;
} kPages[] = {
    {"--completion-script-bash", "complete -o default -W '" COMMANDS " " FLAGS "' ceems_mark\n"},
    {"--completion-script-zsh",
     "#compdef ceems_mark\n"
     "_ceems_mark() {\n"
     "  if (( CURRENT == 2 )); then compadd -- " COMMANDS "; fi\n"
     "  if [[ $words[CURRENT] == -* ]]; then compadd -- " FLAGS "; elif (( CURRENT > 2 )); then _default; fi\n"
     "}\n"
     "if [[ \"${funcstack[1]}\" == _ceems_mark ]]; then _ceems_mark \"$@\"; else compdef _ceems_mark ceems_mark; fi\n"},
    {"--completion-script-fish",
     "complete -c ceems_mark -n __fish_use_subcommand -f -a '" COMMANDS "'\n"
     "for flag in verbose any-host help version\n  complete -c ceems_mark -l $flag\nend\n"
     "for flag in regex metric result fom unit interval\n  complete -c ceems_mark -x -l $flag\nend\n"},
    {"--version", kVersion},
    {"--help", kHelp},
    {"-h", kHelp},
};

/* In a man page, "-" alone is a hyphen, and "\" begins an escape. */
static void print_man(void) {
  const char *at;
  printf(".TH ceems_mark 8 \"\" \"ceems_mark " CEEMS_MARK_VERSION "\"\n.SH NAME\nceems_mark \\- marks of jobs for the exporter of CEEMS\n"
         ".SH SYNOPSIS\n.B ceems_mark\n[\\-v] COMMAND ...\n.SH DESCRIPTION\n.nf\n");
  for (at = kHelp; *at != '\0'; ++at) {
    if (*at == '-' || *at == '\\') {
      fputs(*at == '-' ? "\\-" : "\\e", stdout);
    } else {
      putchar(*at);
    }
  }
  puts(".fi\n.SH SEE ALSO\n.BR ceems_exporter (8)");
}

static bool verbose = false;
volatile sig_atomic_t ended = 0;
static volatile pid_t child = 0;

int usage(const char *what) {
  fprintf(stderr, "ceems_mark: %s; 'ceems_mark --help' shows how to use it\n", what);
  return kUsage;
}

int failed(const char *what, const char *why) {
  if (verbose) {
    fprintf(stderr, "ceems_mark: %s: %s\n", what, why);
    return kFailed;
  }
  return 0;
}

static bool is_word(const char *text, const char *others, size_t most) {
  const size_t length = strlen(text);
  const char *at;
  if (length == 0 || length > most) {
    return false;
  }
  for (at = text; *at != '\0'; ++at) {
    const bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
    if (!letter && (at == text ? *at != '%' || strchr(others, '%') == NULL
                               : !(*at >= '0' && *at <= '9') && strchr(others, *at) == NULL)) {
      return false;
    }
  }
  return true;
}

bool is_name(const char *text) { return is_word(text, "_.-", 32); }
bool is_unit(const char *text) { return is_word(text, "_.-/%^*", 16); }

static bool is_number(const char *text) {
  char *end = NULL;
  const double value = strtod(text, &end);
  return end != text && *end == '\0' && value - value == 0 && strpbrk(text, "xXpP+ \t\n") == NULL;
}

bool take_options(int count, char **words, const struct option *options) {
  int i = 0;
  while (i < count) {
    const char *word = words[i++];
    const size_t length = strcspn(word, "=");
    const struct option *option = options;
    while (option->name != NULL && (strlen(option->name) != length || strncmp(option->name, word, length) != 0)) {
      ++option;
    }
    if (option->name == NULL || (option->value == NULL && word[length] == '=')) {
      return false;
    }
    if (option->value == NULL) {
      *option->given = true;
    } else if (word[length] == '=') {
      *option->value = word + length + 1;
    } else if (i < count) {
      *option->value = words[i++];
    } else {
      return false;
    }
  }
  return true;
}

const char *finish(void) {
  static char answer[64];
  const int fd = ceems_mark_socket_();
  const char *why = "the exporter does not answer";
  struct pollfd waiting = {fd, POLLIN, 0};
  if (fd < 0) {
    return "no exporter takes marks here";
  }
  shutdown(fd, SHUT_WR);
  while (poll(&waiting, 1, kPatienceMs) == 1) {
    const ssize_t size = recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT);
    if (size < 0 && errno == ECONNRESET) {
      continue; /* it closed the connection without reading; its answer comes next */
    }
    if (size <= 0) {
      break;
    }
    answer[size] = '\0';
    why = strcmp(answer, "ok") == 0 ? NULL : answer;
  }
  return why;
}

static int mark(const char *verb, int count, char **words) {
  const bool is_progress = strcmp(verb, "progress") == 0;
  const bool has_number = is_progress || strcmp(verb, "result") == 0 || strcmp(verb, "fom") == 0;
  const char *name;
  const char *why;
  char text[257];
  if (has_number ? count < 2 || count > (is_progress ? 2 : 3) : count != 1) {
    return usage("wrong number of words");
  }
  name = words[is_progress ? 1 : 0];
  if (!is_name(name)) {
    return usage("invalid name");
  }
  if (has_number && !is_number(words[is_progress ? 0 : 1])) {
    return usage("invalid number");
  }
  if (count == 3 && words[2][0] != '\0' && !is_unit(words[2])) {
    return usage("invalid unit");
  }
  snprintf(text, sizeof text, "%s %s %s %s", verb, words[0], count > 1 ? words[1] : "", count > 2 ? words[2] : "");
  /* If the exporter has refused already, its answer says why. */
  if (ceems_mark_connect_(0) < 0 || (send(ceems_mark_state_.fd, text, strlen(text), MSG_NOSIGNAL) < 0 && errno != EPIPE)) {
    return failed(verb, strerror(errno));
  }
  why = finish();
  return why != NULL ? failed(verb, why) : 0;
}

static void pass_on(int number) {
  if (child > 0) {
    kill(child, number);
  }
}

static int wrap(int count, char **words) {
  struct sigaction action;
  int status = 0;
  const char *why;
  if (count < 3 || strcmp(words[1], "--") != 0) {
    return usage("expected wrap NAME -- COMMAND");
  }
  if (!is_name(words[0])) {
    return usage("invalid name");
  }
  ceems_mark_begin(words[0]);
  child = fork();
  if (child < 0) {
    perror("ceems_mark: fork");
    return kFailed;
  }
  if (child == 0) {
    execvp(words[2], words + 2);
    fprintf(stderr, "ceems_mark: %s: %s\n", words[2], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
  }
  memset(&action, 0, sizeof action);
  action.sa_handler = pass_on;
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  action.sa_handler = SIG_IGN; /* of the terminal, which sends it to the command as well */
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGQUIT, &action, NULL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  ceems_mark_end(words[0]);
  why = finish();
  if (why != NULL) {
    failed("wrap", why);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What `follow` looks for. */
struct pattern {
  regex_t regex;
  bool has_group;
  const char *result;
  const char *fom;
  const char *unit;
  /* Found since marks were last sent. */
  double lines;
  double value;
  bool found;
  /* What was read of a line that has not ended. */
  char line[8192];
  size_t length;
};

/* Compiles an extended regular expression in which \d is a digit. */
static bool compile(struct pattern *pattern, const char *text) {
  char *posix = calloc(5, strlen(text) + 1);
  char *to = posix;
  int status;
  if (posix == NULL) {
    return false;
  }
  while (*text != '\0') {
    if (text[0] == '\\' && text[1] == 'd') {
      memcpy(to, "[0-9]", 5);
      to += 5;
      text += 2;
    } else {
      if (text[0] == '\\' && text[1] != '\0') {
        *to++ = *text++;
      }
      *to++ = *text++;
    }
  }
  status = regcomp(&pattern->regex, posix, REG_EXTENDED);
  free(posix);
  pattern->has_group = status == 0 && pattern->regex.re_nsub > 0;
  return status == 0;
}

static void look_at(struct pattern *pattern, char *line) {
  regmatch_t match[2];
  if (regexec(&pattern->regex, line, 2, match, 0) != 0) {
    return;
  }
  if (pattern->has_group) {
    if (match[1].rm_so < 0) {
      return;
    }
    line[match[1].rm_eo] = '\0';
    if (!is_number(line + match[1].rm_so)) {
      return;
    }
    pattern->value = strtod(line + match[1].rm_so, NULL);
    if (pattern->result != NULL && !pattern->found) {
      ceems_mark_progress(pattern->value, pattern->result); /* the first number is where counting begins */
    }
  }
  pattern->lines += 1;
  pattern->found = true;
}

/* At most one mark for all lines that came at once. What could not be sent is sent with the next. */
static void send_found(struct pattern *pattern) {
  int dropped;
  if (!pattern->found) {
    return;
  }
  if (pattern->fom != NULL) {
    dropped = ceems_mark_fom(pattern->fom, pattern->value, pattern->unit);
  } else if (pattern->has_group) {
    dropped = ceems_mark_progress(pattern->value, pattern->result);
  } else {
    dropped = ceems_mark_result(pattern->result, pattern->lines, pattern->unit);
  }
  if (dropped == 0) {
    pattern->found = false;
    pattern->lines = 0;
  }
}

static void end_on_signal(int number) {
  (void)number;
  ended = 1;
}

void end_on_signals(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = end_on_signal;
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
}

/* Cuts what was read into lines. Of one that is longer than the buffer, only the beginning is looked at. */
static void take_text(struct pattern *pattern, const char *text, size_t size) {
  size_t i;
  for (i = 0; i < size; ++i) {
    if (text[i] == '\n') {
      pattern->line[pattern->length] = '\0';
      look_at(pattern, pattern->line);
      pattern->length = 0;
    } else if (text[i] != '\0' && pattern->length < sizeof pattern->line - 1) {
      pattern->line[pattern->length++] = text[i];
    }
  }
  send_found(pattern);
}

static int follow_input(struct pattern *pattern) {
  static char text[65536];
  ssize_t size;
  while ((size = read(STDIN_FILENO, text, sizeof text)) > 0 || (size < 0 && errno == EINTR)) {
    ssize_t written = 0;
    while (written < size) {
      const ssize_t part = write(STDOUT_FILENO, text + written, (size_t)(size - written));
      if (part < 0 && errno != EINTR) {
        return kFailed;
      }
      written += part > 0 ? part : 0;
    }
    if (size > 0) {
      take_text(pattern, text, (size_t)size);
    }
  }
  take_text(pattern, "\n", 1);
  return 0;
}

/* Reads to the present end of the file, and returns where that is. */
static off_t read_on(struct pattern *pattern, int fd, off_t at) {
  static char text[65536];
  ssize_t size;
  while (fd >= 0 && (size = read(fd, text, sizeof text)) > 0) {
    at += size;
    take_text(pattern, text, (size_t)size);
  }
  send_found(pattern);
  return at;
}

/* Reads what is added to the file until this program or its parent ends. What was in it before is left out. */
static int follow_file(struct pattern *pattern, const char *path) {
  const pid_t parent = getppid();
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  off_t at = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
  while (true) {
    const bool last = ended || getppid() != parent;
    struct stat now;
    struct stat opened;
    at = read_on(pattern, fd, at);
    if (last) {
      break;
    }
    if (stat(path, &now) == 0 && (fd < 0 || fstat(fd, &opened) != 0 || now.st_ino != opened.st_ino || now.st_dev != opened.st_dev)) {
      read_on(pattern, fd, at); /* what was written since, before it was rotated */
      if (fd >= 0) {
        close(fd);
      }
      fd = open(path, O_RDONLY | O_CLOEXEC);
      at = 0;
      pattern->length = 0;
      if (fd >= 0) {
        continue;
      }
    } else if (fd >= 0 && fstat(fd, &opened) == 0 && opened.st_size < at) { /* it was begun anew */
      at = lseek(fd, 0, SEEK_SET);
      pattern->length = 0;
      continue;
    }
    poll(NULL, 0, kPollMs);
  }
  return 0;
}

static int follow(int count, char **words) {
  static struct pattern pattern;
  const char *regex = NULL;
  const struct option options[] = {{"--regex", &regex, NULL}, {"--result", &pattern.result, NULL}, {"--fom", &pattern.fom, NULL}, {"--unit", &pattern.unit, NULL}, {NULL, NULL, NULL}};
  const char *why;
  int status;
  if (count < 1 || !take_options(count - 1, words + 1, options) || regex == NULL || (pattern.result == NULL) == (pattern.fom == NULL)) {
    return usage("expected follow FILE --regex REGEX (--result NAME | --fom NAME) [--unit UNIT]");
  }
  if (!is_name(pattern.result != NULL ? pattern.result : pattern.fom)) {
    return usage("invalid name");
  }
  if (pattern.unit != NULL && !is_unit(pattern.unit)) {
    return usage("invalid unit");
  }
  if (!compile(&pattern, regex)) {
    return usage("invalid regular expression");
  }
  if (pattern.fom != NULL && !pattern.has_group) {
    return usage("the regular expression needs a group, such as (\\d+), for the figure of merit");
  }
  if (pattern.unit != NULL && pattern.result != NULL && pattern.has_group) {
    return usage("a running number has no unit");
  }
  end_on_signals();
  status = strcmp(words[0], "-") == 0 ? follow_input(&pattern) : follow_file(&pattern, words[0]);
  why = finish();
  regfree(&pattern.regex);
  return status != 0 || why == NULL ? status : failed("follow", why);
}

int main(int argc, char **argv) {
  while (argc > 1 && argv[1][0] == '-') {
    for (size_t i = 0; i < sizeof kPages / sizeof kPages[0]; ++i) {
      if (strcmp(argv[1], kPages[i].option) == 0) {
        fputs(kPages[i].text, stdout);
        return 0;
      }
    }
    if (strcmp(argv[1], "--help-man") == 0) {
      print_man();
      return 0;
    }
    if (strcmp(argv[1], "-v") != 0 && strcmp(argv[1], "--verbose") != 0) {
      return usage("unknown option");
    }
    verbose = true;
    ++argv;
    --argc;
  }
  if (argc < 2) {
    return usage("expected a command");
  }
  if (strcmp(argv[1], "wrap") == 0) {
    return wrap(argc - 2, argv + 2);
  }
  if (strcmp(argv[1], "follow") == 0) {
    return follow(argc - 2, argv + 2);
  }
  if (strcmp(argv[1], "scrape") == 0) {
    return scrape(argc - 2, argv + 2);
  }
  for (size_t i = 0; i < 5; ++i) {
    static const char *const kVerbs[] = {"begin", "end", "result", "progress", "fom"};
    if (strcmp(argv[1], kVerbs[i]) == 0) {
      return mark(argv[1], argc - 2, argv + 2);
    }
  }
  return usage("unknown command");
}
