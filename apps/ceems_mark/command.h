/* What the commands of ceems_mark share. */
#ifndef CEEMS_MARK_COMMAND_H
#define CEEMS_MARK_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { kFailed = 1, kUsage = 2, kPatienceMs = 1000, kPollMs = 200 };

/* Set by the signals that end_on_signals() takes. */
extern volatile sig_atomic_t ended;
void end_on_signals(void);

/* Says what is wrong with the command line, and returns the exit status. */
int usage(const char* what);
/* Says why a mark was not taken, if the user asked for it, and returns the exit status. */
int failed(const char* what, const char* why);

bool is_name(const char* text);
bool is_unit(const char* text);

/* An option "--name VALUE" or "--name=VALUE", or "--name" alone if it has no `value`. */
struct option {
  const char* name; /* with "--"; NULL ends the list */
  const char** value;
  bool* given;
};
bool take_options(int count, char** words, const struct option* options);

/* Waits until the exporter has read everything, because it looks at this process while it reads.
 * Returns why it did not take it, or NULL. */
const char* finish(void);

/* `ceems_mark scrape`: results from the counters of a program with a page of metrics. */
int scrape(int count, char** words);

#endif
