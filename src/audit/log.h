#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/config.h"
#include "audit/destination.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "net/http.h"

namespace ceems::audit {

enum class What : std::uint8_t {
  kRead,     ///< somebody read data of other people, which their role allows
  kChanged,  ///< somebody changed who may read data: a personal token was made or revoked
  kDenied,   ///< a request was refused because of who sent it, or of what it asked for
};

/// One request that is worth a line. The texts come from clients and must not hold secrets: no
/// header other than the user's name, and no parameter that is not known to be harmless.
struct Event {
  What what = What::kDenied;
  std::string_view user = {};  ///< empty: unknown
  std::string_view role = {};  ///< "admin", "support", "service"; empty: not known
  const net::Request* request = nullptr;
  std::string_view route = {};  ///< instead of the path of the request, if not empty
  int status = 0;
  std::string_view reason = {};  ///< of a denial, or what was changed; may be empty
  /// The values of the selecting parameters: {"uuid", {"1", "2"}}. Empty lists are left out.
  std::vector<std::pair<std::string_view, std::vector<std::string>>> selected = {};
};

/// The audit log of a program (docs/audit.md): one JSON object a line. A line that cannot be
/// written is lost; the log of the program reports the first of them and when writing works again.
/// Safe for concurrent use.
class Log {
 public:
  /// `program` is "ceems_lb" or "ceems_api_server"; `clock` must outlive the log. Errors: any of
  /// open_destination(), and kInvalidArgument if the options are not enabled.
  static Result<std::unique_ptr<Log>> open(const Options& options,
                                           std::string program,
                                           const Clock& clock);

  void write(const Event& event);
  /// After an external rotation. On an error, which is logged, the old file stays open.
  void reopen();

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] std::uint64_t lost() const;

 private:
  Log(Options options,
      std::string program,
      const Clock& clock,
      std::unique_ptr<Destination> destination)
      : options_(std::move(options)),
        program_(std::move(program)),
        clock_(&clock),
        destination_(std::move(destination)) {}

  [[nodiscard]] std::string line_of(const Event& event) const;

  const Options options_;
  const std::string program_;
  const Clock* clock_;
  mutable Mutex mutex_;
  std::unique_ptr<Destination> destination_ CEEMS_GUARDED_BY(mutex_);
  bool failing_ CEEMS_GUARDED_BY(mutex_) = false;
  std::uint64_t lost_ CEEMS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ceems::audit
