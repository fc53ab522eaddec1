#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/marks/ledger.h"
#include "exporter/marks/server.h"
#include "exporter/run/job.h"
#include "host/paths.h"

namespace ceems::exporter::run {

/// The variable in which programs find the socket (docs/marks.md).
extern const char* const kMarkVariable;

/// The socket to which processes of the run on this node send marks. It is in a directory that only
/// this user can enter, and only processes of the run are taken. The destructor removes both.
class MarkSocket {
 public:
  struct Options {
    host::Paths paths = {};
    Job job = {};
    int self = 0;           ///< this process
    std::string path = {};  ///< of the socket; empty: in a new directory below `temporary`
    std::string temporary = "/tmp";
  };
  /// From now on senders can connect; start() takes what they send. `clock` must outlive it.
  /// Errors: what the file system says; kUnavailable if the directory is another user's.
  static Result<std::unique_ptr<MarkSocket>> create(Options options, const Clock& clock);
  ~MarkSocket();
  MarkSocket(const MarkSocket&) = delete;
  MarkSocket& operator=(const MarkSocket&) = delete;

  void start();
  /// The run has ended: takes what was sent, and ends all regions. Call it before the last sample.
  void finish();
  /// After a fork: the destructor removes nothing, because the child uses it.
  void leave_to_child() { removes_ = false; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::shared_ptr<marks::Ledger>& ledger() const { return ledger_; }

 private:
  MarkSocket(std::string path, bool made, const Clock& clock);

  const std::string path_;
  const bool made_;  // the directory
  bool removes_ = true;
  const Clock& clock_;
  std::shared_ptr<marks::Ledger> ledger_;
  std::unique_ptr<marks::Server> server_;
};

}  // namespace ceems::exporter::run
