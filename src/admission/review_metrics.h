#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "metrics/registry.h"
#include "net/server/server.h"

namespace ceems::admission {

/// What became of a review.
enum class ReviewOutcome : std::uint8_t {
  kPatched,    ///< the mutation set a creator
  kUnchanged,  ///< the creator is there, or the request leaves the template alone
  kUnmarked,   ///< validation: allowed, although the mutation would have set another creator
  kSkipped,    ///< an object of another kind
  kRefused,    ///< allowed: false
  kInvalid,    ///< 400: not a review
  kError,      ///< 500: the object cannot be read, or the operation is not supported
};
std::string_view to_string(ReviewOutcome outcome);

/// The metrics of the admission controller (docs/admission-controller.md). Safe for concurrent use.
class ReviewMetrics {
 public:
  ReviewMetrics();

  /// `hook` is "mutate" or "validate".
  void count(std::string_view hook, ReviewOutcome outcome, double seconds);
  void count_dropped(net::Dropped what) { dropped_.with({net::to_string(what)}).add(); }

  /// For net::ServerOptions::on_certificate.
  [[nodiscard]] std::function<void(std::int64_t)> on_certificate();

  /// The page in the text format 0.0.4.
  [[nodiscard]] std::string page();

 private:
  metrics::Registry registry_{"ceems_k8s_admission_controller", "the admission controller"};
  metrics::Family<metrics::Counter>& reviews_;
  metrics::Family<metrics::Counter>& dropped_;
  metrics::Family<metrics::Histogram>& durations_;
};

}  // namespace ceems::admission
