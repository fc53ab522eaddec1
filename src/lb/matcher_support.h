#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace ceems::lb {

/// Whether a Pyroscope server honours the field `matchers` of LabelNames, LabelValues and Series,
/// or a TSDB the parameter `match[]` of labels and label/NAME/values. Phlare, from which
/// Pyroscope 1.0 was made, and Prometheus before 2.24 ignored it and answered for all profiles or
/// series. The server is asked for labels that nothing has: if it returns any, it ignores the
/// matchers. A TSDB is asked by the name of a metric as well. An empty answer counts only if the
/// server returns some labels without matchers; a TSDB without any gives nothing away for the
/// moment.
///
/// kExtraFilters stands for requests whose units are in `extra_filters[]` (gate/unit_filters.h). A
/// server gets them only if both a query, for `up`, and the labels show that it applies the
/// parameter, which something between it and this program may remove or replace. That is asked
/// again every minute in which there are such requests, and never in advance.
///
/// Safe for concurrent use.
class MatcherSupport {
 public:
  /// Sends a call to the server and returns the body of its answer: a method and JSON; "labels",
  /// "series", "values" (of __name__) or "label/NAME/values" and a query string; or "query" and a
  /// form to post. It must not take longer than a request may wait.
  using Ask = std::function<Result<std::string>(std::string_view method, std::string_view call)>;

  static constexpr std::string_view kExtraFilters = "extra_filters[]";

  /// `clock` must outlive the object.
  explicit MatcherSupport(Ask ask, const Clock& clock = real_clock())
      : ask_(std::move(ask)), clock_(&clock) {}

  /// Whether calls of this method have matchers that a server may ignore.
  static bool concerns(std::string_view method);

  /// The methods whose calls have matchers.
  static std::vector<std::string_view> methods(bool tsdb);
  /// Asks the server before the next request has to wait for that, unless enough is known for a
  /// while. Until it answers, what was known stays.
  void renew(std::string_view method) CEEMS_EXCLUDES(mutex_);

  /// Whether calls of this method may be sent to the server. True for methods without `matchers`;
  /// false while it is not known. Asks the server if nothing recent is known, while other callers
  /// wait.
  bool allows(std::string_view method) CEEMS_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { kHonours, kIgnores, kEmpty, kUnknown };
  struct Known {
    State state = State::kUnknown;
    std::chrono::system_clock::time_point until{};  ///< when it must be asked again
  };

  void keep(std::string_view method, State state) CEEMS_REQUIRES(mutex_);
  [[nodiscard]] State find_out(std::string_view method) const;
  [[nodiscard]] State find_out_by_name(std::string_view method, std::chrono::hours back) const;
  [[nodiscard]] State find_out_filters() const;
  /// The first entry that the answer lists, empty if it is not a text; nothing if it lists none.
  [[nodiscard]] Result<std::optional<std::string>> first(std::string_view method,
                                                         std::string_view matcher,
                                                         std::chrono::hours back) const;
  /// The same for the answer to `call`, which lists its entries in `field`.
  [[nodiscard]] Result<std::optional<std::string>> first_in(std::string_view field,
                                                            std::string_view method,
                                                            std::string_view call) const;

  Ask ask_;
  const Clock* clock_;
  Mutex mutex_;
  std::map<std::string, Known, std::less<>> known_ CEEMS_GUARDED_BY(mutex_);  ///< by method
};

}  // namespace ceems::lb
