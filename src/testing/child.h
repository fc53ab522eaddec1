#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace ceems::testing {

/// The wait status (wait(2)) of a child process that runs `body` and exits with the status it
/// returns. Whatever `body` does to its user, signals or environment does not affect the test.
template <typename Body>
int status_of_child(const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

/// The exit status alone; 255 if a signal ended the child.
template <typename Body>
int in_child(const Body& body) {
  const int status = status_of_child(body);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

}  // namespace ceems::testing
